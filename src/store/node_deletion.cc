#include "store/node_deletion.h"

#include <ranges>

#include "store/paths.h"
#include "zk/recipes/lock.h"

namespace nodepool::store {

Task<std::vector<std::string>> ZnodesBelow(zk::Client& client, NodeId id) {
  std::vector<std::string> below, directories;
  zk::Result<zk::Children> children = co_await client.GetChildren(paths::Node(id));
  if (!children) co_return below;
  for (const std::string& child : children->names) {
    std::string directory = paths::Node(id) + "/" + child;
    zk::Result<zk::Children> inner = co_await client.GetChildren(directory);
    directories.push_back(directory);
    if (!inner) continue;
    for (const std::string& name : inner->names) {
      if (!zk::IsContender(name)) below.push_back(directory + "/" + name);
    }
    std::vector<std::string> line = zk::SortedContenders(std::move(inner->names));
    for (const std::string& name : line | std::views::reverse) below.push_back(directory + "/" + name);
  }
  below.insert(below.end(), directories.begin(), directories.end());
  co_return below;
}

std::vector<zk::Op> DeletionOf(const StoredNode& node, const std::vector<std::string>& below, WallTime now) {
  std::string path = paths::Node(node.id);
  Node record = node.record;
  record.SetState(NodeState::kDeleted, now);
  std::vector<zk::Op> ops;
  ops.emplace_back(zk::SetOp{path, ToJson(record), node.revision.version});
  for (const std::string& znode : below) ops.emplace_back(zk::DeleteOp{znode, -1});
  ops.emplace_back(zk::DeleteOp{path, -1});
  return ops;
}

}  // namespace nodepool::store
