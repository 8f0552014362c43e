#include "zk/client.h"

#include <set>
#include <utility>

#include "base/error.h"

namespace nodepool::zk {

namespace {

constexpr std::size_t kSequenceDigits = 10;

}  // namespace

std::string OwnWrites::FindTarget(std::string_view path, EventType event) const {
  const auto& under_way = state_->under_way;
  if (under_way.empty()) return "";
  if (under_way.contains(path)) return std::string(path);
  if (event != EventType::kCreated || path.size() < kSequenceDigits) return "";
  std::string_view prefix = path.substr(0, path.size() - kSequenceDigits);
  return under_way.contains(prefix) ? std::string(prefix) : "";
}

OwnWrites::Write OwnWrites::Begin(std::string target) const { return Write(state_, std::move(target)); }

// Of several changes of one znode the last one is what the transaction leaves.
OwnWrites::Sets OwnWrites::Begin(const std::vector<Op>& ops) const {
  Sets sets;
  std::set<std::string_view> seen;
  for (std::size_t i = ops.size(); i-- > 0;) {
    const auto* set = std::get_if<SetOp>(&ops[i]);
    if (set && seen.insert(set->path).second) sets.writes_.emplace(i, Begin(set->path));
  }
  return sets;
}

void OwnWrites::Sets::End(const std::vector<Op>& ops, const MultiResult& answer) {
  if (!answer.ok()) return;
  for (auto& [place, write] : writes_) {
    const auto& set = std::get<SetOp>(ops[place]);
    write.Succeed(set.path, {set.data, answer.results[place].stat});
  }
}

OwnWrites::Write::Write(std::shared_ptr<State> state, std::string target)
    : state_(std::move(state)), target_(std::move(target)) {
  ++state_->under_way[target_];
}

OwnWrites::Write::~Write() { End("", nullptr); }

void OwnWrites::Write::End(const std::string& path, const NodeData* node) {
  std::shared_ptr<State> state = std::exchange(state_, nullptr);
  if (!state) return;
  auto entry = state->under_way.find(target_);
  if (--entry->second == 0) state->under_way.erase(entry);
  state->listeners.Notify(target_, path, node);
}

namespace {

// How often a helper starts again when other clients create or delete znodes at the same path.
constexpr int kRounds = 10;

Error TooBusy(const std::string& path) {
  return Error(Verdict::kRetry, path + ": other clients keep deleting it or its parents; try again later");
}

Error Refused(const std::string& path, Code code) {
  return Error(Verdict::kFail, "creating " + path + ": " + std::string(ToString(code)));
}

// Creates the znodes of `missing`, given deepest first. False: a parent was deleted meanwhile.
Task<bool> CreateDownward(Client& client, std::vector<std::string> missing) {
  for (; !missing.empty(); missing.pop_back()) {
    Result<Created> created = co_await client.Create(missing.back(), "", CreateMode::kPersistent);
    if (created || created.error() == Code::kNodeExists) continue;
    if (created.error() == Code::kNoNode && missing.back() == "/") {
      throw Error(Verdict::kInvalid, "the parent of ZooKeeper's chroot does not exist; create it first");
    }
    if (created.error() == Code::kNoNode) co_return false;
    throw Refused(missing.back(), created.error());
  }
  co_return true;
}

using UnderWay = std::variant<Task<Result<NodeData>>, Task<Result<Children>>>;

Task<std::vector<ReadResult>> Collect(std::vector<UnderWay> reads) {
  std::vector<ReadResult> results;
  for (UnderWay& read : reads) {
    ReadResult& result = results.emplace_back();
    if (auto* get = std::get_if<Task<Result<NodeData>>>(&read)) {
      Result<NodeData> node = co_await std::move(*get);
      result.code = node ? Code::kOk : node.error();
      if (node) result.node = std::move(*node);
    } else {
      Result<Children> children = co_await std::get<Task<Result<Children>>>(std::move(read));
      result.code = children ? Code::kOk : children.error();
      if (children) result.names = std::move(children->names);
    }
  }
  co_return results;
}

}  // namespace

// All operations are sent within this call, so that the order of the calls is preserved.
Task<std::vector<ReadResult>> Client::ReadMany(std::vector<ReadOp> ops) {
  std::vector<UnderWay> reads;
  for (ReadOp& op : ops) {
    if (op.kind == ReadOp::Kind::kData) {
      reads.emplace_back(Get(std::move(op.path)));
    } else {
      reads.emplace_back(GetChildren(std::move(op.path)));
    }
  }
  return Collect(std::move(reads));
}

std::string ParentPath(std::string_view path) {
  std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? "/" : std::string(path.substr(0, slash));
}

std::string BaseName(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

Task<> EnsurePath(Client& client, std::string path) {
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::string> missing;
    // Up to the root, which is missing when it is a chroot that does not exist yet.
    for (std::string level = path;; level = ParentPath(level)) {
      Result<Stat> exists = co_await client.Exists(level);
      if (exists) break;
      missing.push_back(level);
      if (level == "/") break;
    }
    bool is_done = co_await CreateDownward(client, std::move(missing));
    if (is_done) co_return;
  }
  throw TooBusy(path);
}

Task<Result<Created>> CreateWithParents(Client& client, std::string path, std::string data, CreateMode mode) {
  for (int round = 0; round < kRounds; ++round) {
    Result<Created> created = co_await client.Create(path, data, mode);
    if (created || created.error() != Code::kNoNode) co_return created;
    co_await EnsurePath(client, ParentPath(path));
  }
  throw TooBusy(path);
}

Task<Result<>> DeleteRecursive(Client& client, std::string path) {
  for (int round = 0; round < kRounds; ++round) {
    // Parents are before their children, so the reverse order is deepest first.
    std::vector<std::string> found{path};
    for (std::size_t i = 0; i < found.size(); ++i) {
      Result<Children> children = co_await client.GetChildren(found[i]);
      if (!children) continue;
      for (const std::string& name : children->names) found.push_back(found[i] + "/" + name);
    }
    bool has_new_children = false;
    for (; !found.empty(); found.pop_back()) {
      Result<> deleted = co_await client.Delete(found.back());
      if (deleted || deleted.error() == Code::kNoNode) continue;
      if (deleted.error() != Code::kNotEmpty) co_return deleted;
      has_new_children = true;
    }
    if (!has_new_children) co_return Result<>();
  }
  co_return std::unexpected(Code::kNotEmpty);
}

}  // namespace nodepool::zk
