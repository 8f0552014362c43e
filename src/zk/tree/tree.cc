#include "zk/tree/tree.h"

#include <fmt/format.h>

#include <limits>

#include "zk/client.h"
#include "zk/znode.h"

namespace nodepool::zk {
namespace {

// Every level of a path costs time in each request that names it.
constexpr std::size_t kLongestPath = 64 << 10;

// The owner that a server stores for a container znode and never shows to clients.
constexpr std::int64_t kContainerOwner = std::numeric_limits<std::int64_t>::min();

bool IsSequential(CreateMode mode) {
  return mode == CreateMode::kPersistentSequential || mode == CreateMode::kEphemeralSequential;
}

bool IsEphemeral(CreateMode mode) {
  return mode == CreateMode::kEphemeral || mode == CreateMode::kEphemeralSequential;
}

bool IsSupported(CreateMode mode) {
  return IsSequential(mode) || IsEphemeral(mode) || mode == CreateMode::kPersistent ||
         mode == CreateMode::kContainer;
}

bool IsReserved(std::string_view path) {
  return path == "/" || path == "/zookeeper" || path == "/zookeeper/quota" || path == "/zookeeper/config";
}

std::int64_t Milliseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

bool VersionDiffers(std::int32_t expected, const Stat& stat) {
  return expected != -1 && expected != stat.version;
}

}  // namespace

// Applies operations one by one and undoes them when one is refused, so that a later operation sees
// the effects of the earlier ones. Events are retained until the end.
class DataTree::Transaction {
 public:
  Transaction(DataTree& tree, std::int64_t session, WallTime now, const Identity* who)
      : tree_(tree), session_(session), now_(Milliseconds(now)), who_(who), zxid_(++tree.zxid_) {}

  ~Transaction() {
    if (!is_committed_) {
      for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) (*undo)();
    }
  }

  Result<Created> Create(const CreateOp& op);
  Result<Stat> Set(const SetOp& op);
  Result<> Delete(const DeleteOp& op);
  Result<> Check(const CheckOp& op);
  OpResult Apply(const Op& op);

  void Commit() {
    is_committed_ = true;
    if (!tree_.listener_) return;
    for (const Change& change : changes_) tree_.listener_(change);
  }

 private:
  bool MayWrite() const { return session_ == 0 || tree_.IsOpen(session_); }
  bool MayDo(std::int32_t permission, const Node& node) const {
    return who_ == nullptr || Permits(node.acl.get(), permission, *who_);
  }
  bool HasRoomFor(std::size_t bytes) const {
    return bytes <= tree_.limit_ - std::min(tree_.limit_, tree_.bytes_);
  }

  DataTree& tree_;
  std::int64_t session_;
  std::int64_t now_;
  const Identity* who_;
  std::int64_t zxid_;
  bool is_committed_ = false;
  std::vector<std::move_only_function<void()>> undo_;
  std::vector<Change> changes_;
};

Result<Created> DataTree::Transaction::Create(const CreateOp& op) {
  if (!MayWrite()) return std::unexpected(Code::kSessionExpired);
  if (!IsSupported(op.mode)) return std::unexpected(Code::kUnimplemented);
  if (IsEphemeral(op.mode) && session_ == 0) return std::unexpected(Code::kSessionExpired);
  if (op.path.empty() || op.path.front() != '/') return std::unexpected(Code::kBadArguments);
  Node* parent = tree_.Find(ParentPath(op.path));
  if (parent == nullptr) return std::unexpected(Code::kNoNode);
  if (!MayDo(permission::kCreate, *parent)) return std::unexpected(Code::kNoAuth);
  std::string path = op.path;
  if (IsSequential(op.mode)) path += fmt::format("{:010}", parent->created);
  if (!IsValidPath(path) || path.size() > kLongestPath) return std::unexpected(Code::kBadArguments);
  std::string name = BaseName(path);
  if (name.empty() || parent->children.contains(name)) return std::unexpected(Code::kNodeExists);
  bool parent_is_ephemeral =
      parent->stat.ephemeral_owner != 0 && parent->stat.ephemeral_owner != kContainerOwner;
  if (parent_is_ephemeral) return std::unexpected(Code::kNoChildrenForEphemerals);

  auto node = std::make_unique<Node>();
  node->data = op.data;
  node->acl = op.acl;
  if (op.mode == CreateMode::kContainer) node->stat.ephemeral_owner = kContainerOwner;
  if (IsEphemeral(op.mode)) node->stat.ephemeral_owner = session_;
  std::size_t bytes = BytesOf(path, *node);
  if (!HasRoomFor(bytes)) return std::unexpected(Code::kQuotaExceeded);
  node->stat.czxid = node->stat.mzxid = node->stat.pzxid = zxid_;
  node->stat.ctime = node->stat.mtime = now_;
  if (IsEphemeral(op.mode)) tree_.ephemerals_[session_].insert(path);
  Created created{path, StatOf(*node)};
  undo_.push_back(
      [this, parent, path, name, bytes, pzxid = parent->stat.pzxid, owner = node->stat.ephemeral_owner] {
        parent->children.erase(name);
        parent->stat.pzxid = pzxid;
        // Signed overflow would be a fault; the counter wraps as the server's does.
        parent->created = static_cast<std::int32_t>(static_cast<std::uint32_t>(parent->created) - 1);
        if (auto own = tree_.ephemerals_.find(owner); own != tree_.ephemerals_.end()) own->second.erase(path);
        --tree_.size_;
        tree_.bytes_ -= bytes;
      });
  parent->children.emplace(std::move(name), std::move(node));
  parent->created = static_cast<std::int32_t>(static_cast<std::uint32_t>(parent->created) + 1);
  parent->stat.pzxid = zxid_;
  ++tree_.size_;
  tree_.bytes_ += bytes;
  changes_.push_back({WatchEvent{EventType::kCreated, std::move(path), zxid_}, op.acl, parent->acl});
  return created;
}

Result<Stat> DataTree::Transaction::Set(const SetOp& op) {
  if (!MayWrite()) return std::unexpected(Code::kSessionExpired);
  if (!IsValidPath(op.path)) return std::unexpected(Code::kBadArguments);
  Node* node = tree_.Find(op.path);
  if (node == nullptr) return std::unexpected(Code::kNoNode);
  if (!MayDo(permission::kWrite, *node)) return std::unexpected(Code::kNoAuth);
  if (VersionDiffers(op.version, node->stat)) return std::unexpected(Code::kBadVersion);
  if (op.data.size() > node->data.size() && !HasRoomFor(op.data.size() - node->data.size())) {
    return std::unexpected(Code::kQuotaExceeded);
  }
  std::size_t bytes = tree_.bytes_;
  tree_.bytes_ = bytes - node->data.size() + op.data.size();
  undo_.push_back([this, node, bytes, data = std::move(node->data), stat = node->stat]() mutable {
    node->data = std::move(data);
    node->stat = stat;
    tree_.bytes_ = bytes;
  });
  node->data = op.data;
  node->stat.mzxid = zxid_;
  node->stat.mtime = now_;
  ++node->stat.version;
  changes_.push_back({WatchEvent{EventType::kDataChanged, op.path, zxid_}, node->acl, nullptr});
  return StatOf(*node);
}

Result<> DataTree::Transaction::Delete(const DeleteOp& op) {
  if (!MayWrite()) return std::unexpected(Code::kSessionExpired);
  if (!IsValidPath(op.path) || IsReserved(op.path)) return std::unexpected(Code::kBadArguments);
  Node* parent = tree_.Find(ParentPath(op.path));
  if (parent == nullptr) return std::unexpected(Code::kNoNode);
  if (!MayDo(permission::kDelete, *parent)) return std::unexpected(Code::kNoAuth);
  Node* node = tree_.Find(op.path);
  if (node == nullptr) return std::unexpected(Code::kNoNode);
  if (VersionDiffers(op.version, node->stat)) return std::unexpected(Code::kBadVersion);
  if (!node->children.empty()) return std::unexpected(Code::kNotEmpty);

  std::size_t bytes = BytesOf(op.path, *node);
  changes_.push_back({WatchEvent{EventType::kDeleted, op.path, zxid_}, node->acl, parent->acl});
  auto taken_out = parent->children.extract(BaseName(op.path));
  auto own = tree_.ephemerals_.find(node->stat.ephemeral_owner);
  bool was_ephemeral = own != tree_.ephemerals_.end() && own->second.erase(op.path) > 0;
  std::int64_t former_pzxid = parent->stat.pzxid;
  parent->stat.pzxid = zxid_;
  --tree_.size_;
  tree_.bytes_ -= bytes;
  undo_.push_back([this, parent, former_pzxid, was_ephemeral, bytes, path = op.path,
                   taken_out = std::move(taken_out)]() mutable {
    if (was_ephemeral) tree_.ephemerals_[taken_out.mapped()->stat.ephemeral_owner].insert(path);
    parent->children.insert(std::move(taken_out));
    parent->stat.pzxid = former_pzxid;
    ++tree_.size_;
    tree_.bytes_ += bytes;
  });
  return {};
}

Result<> DataTree::Transaction::Check(const CheckOp& op) {
  if (!IsValidPath(op.path)) return std::unexpected(Code::kBadArguments);
  Node* node = tree_.Find(op.path);
  if (node == nullptr) return std::unexpected(Code::kNoNode);
  if (!MayDo(permission::kRead, *node)) return std::unexpected(Code::kNoAuth);
  if (VersionDiffers(op.version, node->stat)) return std::unexpected(Code::kBadVersion);
  return {};
}

OpResult DataTree::Transaction::Apply(const Op& op) {
  OpResult result;
  if (const auto* create = std::get_if<CreateOp>(&op)) {
    Result<Created> answer = Create(*create);
    if (answer) {
      result.path = std::move(answer->path);
      result.stat = answer->stat;
    }
    result.code = answer ? Code::kOk : answer.error();
  } else if (const auto* set = std::get_if<SetOp>(&op)) {
    Result<Stat> answer = Set(*set);
    if (answer) result.stat = *answer;
    result.code = answer ? Code::kOk : answer.error();
  } else {
    const auto* remove = std::get_if<DeleteOp>(&op);
    Result<> answer = remove ? Delete(*remove) : Check(std::get<CheckOp>(op));
    result.code = answer ? Code::kOk : answer.error();
  }
  return result;
}

DataTree::DataTree() {
  Node& own = *root_.children.emplace("zookeeper", std::make_unique<Node>()).first->second;
  for (std::string_view name : {"config", "quota"}) own.children.emplace(name, std::make_unique<Node>());
  size_ += 3;
  for (std::string_view name : {"zookeeper", "config", "quota"}) bytes_ += BytesOf(name, Node());
}

// Level by level: a tree may have too many levels for the stack.
DataTree::~DataTree() {
  std::vector<std::unique_ptr<Node>> level;
  auto take_children = [](Node& node, std::vector<std::unique_ptr<Node>>& to) {
    for (auto& [name, child] : node.children) to.push_back(std::move(child));
  };
  take_children(root_, level);
  while (!level.empty()) {
    std::vector<std::unique_ptr<Node>> next;
    for (const std::unique_ptr<Node>& node : level) take_children(*node, next);
    level = std::move(next);
  }
}

DataTree::Node* DataTree::Find(std::string_view path) {
  return const_cast<Node*>(static_cast<const DataTree*>(this)->Find(path));
}

const DataTree::Node* DataTree::Find(std::string_view path) const {
  if (path.size() > 1 && path.back() == '/') return nullptr;
  const Node* node = &root_;
  std::size_t begin = 1;
  while (begin < path.size()) {
    std::size_t end = std::min(path.find('/', begin), path.size());
    auto child = node->children.find(path.substr(begin, end - begin));
    if (child == node->children.end()) return nullptr;
    node = child->second.get();
    begin = end + 1;
  }
  return node;
}

// A map's entry, the node and its strings, rounded up. The path of an ephemeral znode is stored whole, too.
std::size_t DataTree::BytesOf(std::string_view path, const Node& node) {
  std::size_t bytes = sizeof(Node) + 120 + BaseName(path).size() + node.data.size();
  if (node.acl != nullptr) bytes += zk::BytesOf(*node.acl);
  bool is_ephemeral = node.stat.ephemeral_owner != 0 && node.stat.ephemeral_owner != kContainerOwner;
  return is_ephemeral ? bytes + 80 + path.size() : bytes;
}

// A server counts creations and reports creations plus deletions.
Stat DataTree::StatOf(const Node& node) {
  Stat stat = node.stat;
  if (stat.ephemeral_owner == kContainerOwner) stat.ephemeral_owner = 0;
  stat.data_length = static_cast<std::int32_t>(node.data.size());
  stat.num_children = static_cast<std::int32_t>(node.children.size());
  stat.cversion = static_cast<std::int32_t>(static_cast<std::uint32_t>(node.created) * 2 -
                                            static_cast<std::uint32_t>(stat.num_children));
  return stat;
}

void DataTree::OpenSession(std::int64_t session) {
  ++zxid_;
  ephemerals_.try_emplace(session);
}

void DataTree::CloseSession(std::int64_t session) {
  auto own = ephemerals_.find(session);
  if (own == ephemerals_.end()) return;
  std::set<std::string> paths = own->second;
  Transaction transaction(*this, session, WallTime(), nullptr);
  for (const std::string& path : paths) (void)transaction.Delete(DeleteOp{path});
  ephemerals_.erase(session);
  transaction.Commit();
}

const std::set<std::string>& DataTree::Ephemerals(std::int64_t session) const {
  static const std::set<std::string> none;
  auto own = ephemerals_.find(session);
  return own == ephemerals_.end() ? none : own->second;
}

Result<NodeData> DataTree::Get(std::string_view path) const {
  if (!IsValidPath(path)) return std::unexpected(Code::kBadArguments);
  const Node* node = Find(path);
  if (node == nullptr) return std::unexpected(Code::kNoNode);
  return NodeData{node->data, StatOf(*node)};
}

Result<Stat> DataTree::Exists(std::string_view path) const {
  if (!IsValidPath(path)) return std::unexpected(Code::kBadArguments);
  const Node* node = Find(path);
  if (node == nullptr) return std::unexpected(Code::kNoNode);
  return StatOf(*node);
}

Result<Children> DataTree::GetChildren(std::string_view path) const {
  if (!IsValidPath(path)) return std::unexpected(Code::kBadArguments);
  const Node* node = Find(path);
  if (node == nullptr) return std::unexpected(Code::kNoNode);
  Children children;
  children.stat = StatOf(*node);
  children.names.reserve(node->children.size());
  for (const auto& [name, child] : node->children) children.names.push_back(name);
  return children;
}

Result<std::size_t> DataTree::CountBelow(std::string_view path) const {
  if (!IsValidPath(path)) return std::unexpected(Code::kBadArguments);
  const Node* node = Find(path);
  if (node == nullptr) return std::unexpected(Code::kNoNode);
  std::size_t count = 0;
  std::vector<const Node*> open{node};
  while (!open.empty()) {
    const Node* parent = open.back();
    open.pop_back();
    count += parent->children.size();
    for (const auto& [name, child] : parent->children) {
      if (!child->children.empty()) open.push_back(child.get());
    }
  }
  return count;
}

Result<Created> DataTree::Create(const CreateOp& op, std::int64_t session, WallTime now,
                                 const Identity* who) {
  Transaction transaction(*this, session, now, who);
  Result<Created> created = transaction.Create(op);
  transaction.Commit();
  return created;
}

Result<Stat> DataTree::Set(const SetOp& op, std::int64_t session, WallTime now, const Identity* who) {
  Transaction transaction(*this, session, now, who);
  Result<Stat> stat = transaction.Set(op);
  transaction.Commit();
  return stat;
}

Result<> DataTree::Delete(const DeleteOp& op, std::int64_t session, const Identity* who) {
  Transaction transaction(*this, session, WallTime(), who);
  Result<> deleted = transaction.Delete(op);
  transaction.Commit();
  return deleted;
}

Result<std::shared_ptr<const Acl>> DataTree::AclOf(std::string_view path) const {
  const Node* node = IsValidPath(path) ? Find(path) : nullptr;
  if (node == nullptr) return std::unexpected(Code::kNoNode);
  return node->acl;
}

Result<Stat> DataTree::SetAcl(std::string_view path, std::shared_ptr<const Acl> acl, std::int32_t version,
                              const Identity* who) {
  ++zxid_;
  if (!IsValidPath(path)) return std::unexpected(Code::kBadArguments);
  Node* node = Find(path);
  if (node == nullptr) return std::unexpected(Code::kNoNode);
  if (who != nullptr && !Permits(node->acl.get(), permission::kAdmin, *who)) {
    return std::unexpected(Code::kNoAuth);
  }
  if (version != -1 && version != node->stat.aversion) return std::unexpected(Code::kBadVersion);
  std::size_t former = BytesOf(path, *node);
  std::swap(node->acl, acl);
  std::size_t bytes = bytes_ - former + BytesOf(path, *node);
  if (bytes > limit_ && bytes > bytes_) {
    std::swap(node->acl, acl);
    return std::unexpected(Code::kQuotaExceeded);
  }
  bytes_ = bytes;
  ++node->stat.aversion;
  return StatOf(*node);
}

bool DataTree::IsEmptiedContainer(std::string_view path) const {
  const Node* node = Find(path);
  return node != nullptr && node->stat.ephemeral_owner == kContainerOwner && node->created != 0 &&
         node->children.empty();
}

std::optional<DataTree::Snapshot> DataTree::Export(std::string_view path) const {
  const Node* node = Find(path);
  if (node == nullptr) return std::nullopt;
  return Snapshot{std::string(path), node->data, node->stat, node->created, node->acl};
}

bool DataTree::Restore(Snapshot znode) {
  if (!IsValidPath(znode.path)) return false;
  Node* node = Find(znode.path);
  std::string name = BaseName(znode.path);
  if (node == nullptr) {
    Node* parent = Find(ParentPath(znode.path));
    if (parent == nullptr) return false;
    node = parent->children.emplace(name, std::make_unique<Node>()).first->second.get();
    ++size_;
  } else if (node != &root_) {
    bytes_ -= BytesOf(znode.path, *node);
  }
  node->data = std::move(znode.data);
  node->stat = znode.stat;
  node->created = znode.created;
  node->acl = std::move(znode.acl);
  if (node != &root_) bytes_ += BytesOf(znode.path, *node);
  std::int64_t owner = node->stat.ephemeral_owner;
  if (owner == 0 || owner == kContainerOwner) return true;
  auto own = ephemerals_.find(owner);
  if (own == ephemerals_.end()) return false;
  own->second.insert(std::move(znode.path));
  return true;
}

std::size_t DataTree::ephemeral_count() const {
  std::size_t count = 0;
  for (const auto& [session, paths] : ephemerals_) count += paths.size();
  return count;
}

MultiResult DataTree::Multi(const std::vector<Op>& ops, std::int64_t session, WallTime now,
                            const Identity* who) {
  Transaction transaction(*this, session, now, who);
  MultiResult multi;
  multi.results.reserve(ops.size());
  for (const Op& op : ops) {
    multi.results.push_back(transaction.Apply(op));
    if (multi.results.back().code == Code::kOk) continue;
    multi.failed = static_cast<int>(multi.results.size()) - 1;
    for (OpResult& earlier : multi.results) {
      if (earlier.code == Code::kOk) earlier = OpResult();
    }
    OpResult skipped;
    skipped.code = Code::kRuntimeInconsistency;
    multi.results.resize(ops.size(), skipped);
    return multi;  // the transaction's destructor undoes the earlier operations
  }
  transaction.Commit();
  return multi;
}

}  // namespace nodepool::zk
