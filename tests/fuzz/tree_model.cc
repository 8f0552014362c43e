#include "tree_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace nodepool::zk {

namespace {

bool IsChild(const std::string& path, const std::string& parent) {
  return path != "/" && TreeModel::ParentOf(path) == parent;
}

bool IsBelow(const std::string& path, const std::string& top) {
  return path != top && path.starts_with(top == "/" ? top : top + "/");
}

bool IsOfServer(const std::string& path) {
  return path == "/" || path == "/zookeeper" || path == "/zookeeper/quota" || path == "/zookeeper/config";
}

// What everybody may do.
std::int32_t PermissionsOf(Access access) {
  switch (access) {
    case Access::kOpen:
      return permission::kAll;
    case Access::kUnreadable:
      return permission::kAll & ~permission::kRead;
    case Access::kReadOnly:
      return permission::kRead;
    case Access::kPrivate:
      return 0;
  }
  return 0;
}

Access AccessOf(const CreateOp& op) {
  for (int access = 0; op.acl != nullptr && access < kAccesses; ++access) {
    if (ListOf(static_cast<Access>(access)) == *op.acl) return static_cast<Access>(access);
  }
  return Access::kOpen;
}

bool Permits(Access access, std::int32_t wanted, const TreeModel::Client& client) {
  return client.is_owner || (PermissionsOf(access) & wanted) != 0;
}

}  // namespace

std::pair<std::string, std::string> OwnerName() { return {"digest", "owner:hash"}; }

Acl ListOf(Access access) {
  Acl acl;
  if (PermissionsOf(access) != 0) acl.push_back({PermissionsOf(access), "world", "anyone"});
  auto [scheme, id] = OwnerName();
  if (access != Access::kOpen) acl.push_back({permission::kAll, scheme, id});
  return acl;
}

std::string TreeModel::ParentOf(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}

TreeModel::TreeModel() {
  for (const char* path : {"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"}) znodes_[path];
}

bool TreeModel::IsPath(std::string_view path) {
  if (path == "/") return true;
  std::string bounded = std::string(path) + "/";
  bool is_absolute = path.starts_with('/') && !path.ends_with('/');
  auto has = [&](std::string_view part) { return bounded.find(part) != std::string::npos; };
  return is_absolute && !has("//") && !has("/./") && !has("/../") &&
         std::ranges::all_of(path, [](char c) { return c > ' ' && c <= '~'; });
}

void TreeModel::CloseSession(std::int64_t session) {
  for (const std::string& path : EphemeralsOf(session)) Remove(path);
}

void TreeModel::Note(EventType type, const std::string& path) {
  changes_.push_back({type, path, znodes_.at(path).access, znodes_.at(ParentOf(path)).access});
}

void TreeModel::Remove(const std::string& path) {
  Note(EventType::kDeleted, path);
  znodes_.erase(path);
}

void TreeModel::DeleteEmptyContainers() {
  auto is_emptied = [&](const auto& entry) {
    return entry.second.is_container && entry.second.created > 0 && ChildrenOf(entry.first).empty();
  };
  std::vector<std::string> emptied;
  do {
    emptied.clear();
    for (const auto& entry : znodes_) {
      if (is_emptied(entry)) emptied.push_back(entry.first);
    }
    for (const std::string& path : emptied) Remove(path);
  } while (!emptied.empty());  // their parents may be
}

MultiResult TreeModel::Apply(const std::vector<Op>& ops, const Client& client) {
  std::map<std::string, Znode> before = znodes_;
  std::size_t changes = changes_.size();
  MultiResult result;
  result.results.resize(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    OpResult& one = result.results[i];
    if (const auto* create = std::get_if<CreateOp>(&ops[i])) one.code = Do(*create, client, one.path);
    if (const auto* set = std::get_if<SetOp>(&ops[i])) one.code = Do(*set, client);
    if (const auto* remove = std::get_if<DeleteOp>(&ops[i])) one.code = Do(*remove, client);
    if (const auto* check = std::get_if<CheckOp>(&ops[i])) one.code = Do(*check, client);
    if (one.code == Code::kOk) continue;
    result.failed = static_cast<int>(i);
    znodes_ = std::move(before);
    changes_.resize(changes);
    return result;
  }
  return result;
}

Code TreeModel::Do(const CreateOp& op, const Client& client, std::string& path) {
  bool is_sequential =
      op.mode == CreateMode::kPersistentSequential || op.mode == CreateMode::kEphemeralSequential;
  bool is_ephemeral = op.mode == CreateMode::kEphemeral || op.mode == CreateMode::kEphemeralSequential;
  if (!op.path.starts_with('/')) return Code::kBadArguments;
  auto parent = znodes_.find(ParentOf(op.path));
  if (parent == znodes_.end()) return Code::kNoNode;
  if (!Permits(parent->second.access, permission::kCreate, client)) return Code::kNoAuth;
  path = is_sequential ? op.path + fmt::format("{:010}", parent->second.created) : op.path;
  if (!IsPath(path)) return Code::kBadArguments;
  if (znodes_.contains(path)) return Code::kNodeExists;
  if (parent->second.owner != 0) return Code::kNoChildrenForEphemerals;
  ++parent->second.created;
  std::int64_t owner = is_ephemeral ? client.session : 0;
  znodes_[path] = {op.data, 0, 0, owner, op.mode == CreateMode::kContainer, AccessOf(op)};
  Note(EventType::kCreated, path);
  return Code::kOk;
}

// Whether the client may do what is `wanted` with the znode, if it has that version.
Code TreeModel::Find(const std::string& path, std::int32_t wanted, std::int32_t version,
                     const Client& client) const {
  if (!IsPath(path)) return Code::kBadArguments;
  auto found = znodes_.find(path);
  if (found == znodes_.end()) return Code::kNoNode;
  if (!Permits(found->second.access, wanted, client)) return Code::kNoAuth;
  std::int32_t now = wanted == permission::kAdmin ? found->second.access_version : found->second.version;
  return version == -1 || version == now ? Code::kOk : Code::kBadVersion;
}

bool TreeModel::MayRead(const std::string& path, const Client& client) const {
  return Permits(znodes_.at(path).access, permission::kRead, client);
}

Code TreeModel::SetAccess(const std::string& path, Access access, std::int32_t version,
                          const Client& client) {
  Code code = Find(path, permission::kAdmin, version, client);
  if (code != Code::kOk) return code;
  znodes_.at(path).access = access;
  ++znodes_.at(path).access_version;
  return code;
}

Code TreeModel::Do(const CheckOp& op, const Client& client) const {
  return Find(op.path, permission::kRead, op.version, client);
}

Code TreeModel::Do(const SetOp& op, const Client& client) {
  Code code = Find(op.path, permission::kWrite, op.version, client);
  if (code != Code::kOk) return code;
  Znode& znode = znodes_.at(op.path);
  znode.data = op.data;
  ++znode.version;
  Note(EventType::kDataChanged, op.path);
  return code;
}

Code TreeModel::Do(const DeleteOp& op, const Client& client) {
  if (!IsPath(op.path) || IsOfServer(op.path)) return Code::kBadArguments;
  auto parent = znodes_.find(ParentOf(op.path));
  if (parent == znodes_.end()) return Code::kNoNode;
  if (!Permits(parent->second.access, permission::kDelete, client)) return Code::kNoAuth;
  Code code =
      Find(op.path, permission::kAll, op.version, TreeModel::Client{0, true});  // the parent's list counts
  if (code != Code::kOk) return code;
  if (!ChildrenOf(op.path).empty()) return Code::kNotEmpty;
  Remove(op.path);
  return code;
}

Stat TreeModel::StatOf(const std::string& path) const {
  const Znode& znode = znodes_.at(path);
  Stat stat;
  stat.version = znode.version;
  stat.num_children = static_cast<std::int32_t>(ChildrenOf(path).size());
  stat.cversion = 2 * znode.created - stat.num_children;  // creations and deletions
  stat.ephemeral_owner = znode.owner;
  stat.aversion = znode.access_version;
  stat.data_length = static_cast<std::int32_t>(znode.data.size());
  return stat;
}

std::vector<std::string> TreeModel::ChildrenOf(const std::string& path) const {
  std::vector<std::string> names;
  for (const auto& [other, znode] : znodes_) {
    if (IsChild(other, path)) names.push_back(other.substr(other.rfind('/') + 1));
  }
  return names;
}

std::size_t TreeModel::CountBelow(const std::string& path) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(Paths(), [&](const auto& other) { return IsBelow(other, path); }));
}

std::vector<std::string> TreeModel::EphemeralsOf(std::int64_t session, const std::string& prefix) const {
  std::vector<std::string> paths;
  for (const auto& [path, znode] : znodes_) {
    if (znode.owner == session && path.starts_with(prefix)) paths.push_back(path);
  }
  return paths;
}

std::vector<std::string> TreeModel::Paths() const {
  std::vector<std::string> paths;
  for (const auto& [path, znode] : znodes_) paths.push_back(path);
  return paths;
}

namespace {

using Kind = WatchModel::Kind;

bool IsAtOrBelow(const std::string& path, const std::string& top) {
  return path == top || top == "/" || path.starts_with(top + "/");
}

bool IsOnce(Kind kind) { return kind == Kind::kData || kind == Kind::kChildren; }

bool Fires(Kind kind, const std::string& watched, EventType type, const std::string& path) {
  switch (kind) {
    case Kind::kData:
      return watched == path && type != EventType::kChildren;
    case Kind::kChildren:
      return watched == path && (type == EventType::kChildren || type == EventType::kDeleted);
    case Kind::kPersistent:
      return watched == path;
    case Kind::kRecursive:
      return IsAtOrBelow(path, watched) && type != EventType::kChildren;
  }
  return false;
}

}  // namespace

bool WatchModel::Remove(std::int64_t connection, int kind, const std::string& path) {
  bool is_found = watches_.erase({connection, Kind::kPersistent, path}) > 0;
  is_found = watches_.erase({connection, Kind::kRecursive, path}) > 0 || is_found;
  if (kind != 1) is_found = watches_.erase({connection, Kind::kData, path}) > 0 || is_found;
  if (kind != 2) is_found = watches_.erase({connection, Kind::kChildren, path}) > 0 || is_found;
  return is_found;
}

void WatchModel::RemoveAll(std::int64_t connection) {
  std::erase_if(watches_, [&](const auto& watch) { return std::get<0>(watch) == connection; });
}

std::vector<WatchModel::Told> WatchModel::TellOf(EventType type, const std::string& path) {
  std::set<std::int64_t> connections;
  std::erase_if(watches_, [&](const auto& watch) {
    const auto& [connection, kind, watched] = watch;
    if (!Fires(kind, watched, type, path)) return false;
    connections.insert(connection);
    return IsOnce(kind);
  });
  std::vector<Told> told;
  for (std::int64_t connection : connections) told.push_back({connection, type, path});
  return told;
}

}  // namespace nodepool::zk
