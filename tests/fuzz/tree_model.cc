#include "tree_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace nodepool::zk {
namespace {

std::string ParentOf(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}

bool IsChild(const std::string& path, const std::string& parent) {
  return path != "/" && ParentOf(path) == parent;
}

bool IsBelow(const std::string& path, const std::string& top) {
  return path != top && path.starts_with(top == "/" ? top : top + "/");
}

bool IsOfServer(const std::string& path) {
  return path == "/" || path == "/zookeeper" || path == "/zookeeper/quota" || path == "/zookeeper/config";
}

}  // namespace

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
  for (const std::string& path : EphemeralsOf(session)) znodes_.erase(path);
}

void TreeModel::DeleteEmptyContainers() {
  auto is_emptied = [&](const auto& entry) {
    return entry.second.is_container && entry.second.created > 0 && ChildrenOf(entry.first).empty();
  };
  for (auto found = std::ranges::find_if(znodes_, is_emptied); found != znodes_.end();
       found = std::ranges::find_if(znodes_, is_emptied)) {
    znodes_.erase(found);
  }
}

MultiResult TreeModel::Apply(const std::vector<Op>& ops, std::int64_t session) {
  std::map<std::string, Znode> before = znodes_;
  MultiResult result;
  result.results.resize(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    OpResult& one = result.results[i];
    if (const auto* create = std::get_if<CreateOp>(&ops[i])) one.code = Do(*create, session, one.path);
    if (const auto* set = std::get_if<SetOp>(&ops[i])) one.code = Do(*set);
    if (const auto* remove = std::get_if<DeleteOp>(&ops[i])) one.code = Do(*remove);
    if (const auto* check = std::get_if<CheckOp>(&ops[i])) one.code = Do(*check);
    if (one.code == Code::kOk) continue;
    result.failed = static_cast<int>(i);
    znodes_ = std::move(before);
    return result;
  }
  return result;
}

Code TreeModel::Do(const CreateOp& op, std::int64_t session, std::string& path) {
  bool is_sequential =
      op.mode == CreateMode::kPersistentSequential || op.mode == CreateMode::kEphemeralSequential;
  bool is_ephemeral = op.mode == CreateMode::kEphemeral || op.mode == CreateMode::kEphemeralSequential;
  if (!op.path.starts_with('/')) return Code::kBadArguments;
  auto parent = znodes_.find(ParentOf(op.path));
  if (parent == znodes_.end()) return Code::kNoNode;
  path = is_sequential ? op.path + fmt::format("{:010}", parent->second.created) : op.path;
  if (!IsPath(path)) return Code::kBadArguments;
  if (znodes_.contains(path)) return Code::kNodeExists;
  if (parent->second.owner != 0) return Code::kNoChildrenForEphemerals;
  ++parent->second.created;
  znodes_[path] = {op.data, 0, 0, is_ephemeral ? session : 0, op.mode == CreateMode::kContainer};
  return Code::kOk;
}

Code TreeModel::Do(const CheckOp& op) const {
  if (!IsPath(op.path)) return Code::kBadArguments;
  auto found = znodes_.find(op.path);
  if (found == znodes_.end()) return Code::kNoNode;
  return op.version == -1 || op.version == found->second.version ? Code::kOk : Code::kBadVersion;
}

Code TreeModel::Do(const SetOp& op) {
  Code code = Do(CheckOp{op.path, op.version});
  if (code != Code::kOk) return code;
  Znode& znode = znodes_.at(op.path);
  znode.data = op.data;
  ++znode.version;
  return code;
}

Code TreeModel::Do(const DeleteOp& op) {
  if (IsOfServer(op.path)) return Code::kBadArguments;
  Code code = Do(CheckOp{op.path, op.version});
  if (code != Code::kOk) return code;
  if (!ChildrenOf(op.path).empty()) return Code::kNotEmpty;
  znodes_.erase(op.path);
  return code;
}

Stat TreeModel::StatOf(const std::string& path) const {
  const Znode& znode = znodes_.at(path);
  Stat stat;
  stat.version = znode.version;
  stat.num_children = static_cast<std::int32_t>(ChildrenOf(path).size());
  stat.cversion = 2 * znode.created - stat.num_children;  // creations and deletions
  stat.ephemeral_owner = znode.owner;
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

}  // namespace nodepool::zk
