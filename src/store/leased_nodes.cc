#include "store/leased_nodes.h"

#include <algorithm>
#include <map>

#include "store/decode.h"

namespace nodepool::store {
namespace {

using Kind = zk::ReadOp::Kind;

std::optional<StoredNode> NodeIn(const NodeId& id, const zk::ReadResult& read, WallTime now) {
  if (read.code != zk::Code::kOk) return std::nullopt;
  Expected<Node> record = ParseNode(read.node.data, now);
  if (!record) return std::nullopt;
  StoredNode node;
  node.id = id;
  node.record = std::move(*record);
  node.revision = RevisionOf(read.node.stat);
  return node;
}

// A contender that is gone in the meantime is left out.
void FillIdentifiers(std::vector<LockedView>& views, const std::vector<zk::ReadResult>& read) {
  std::size_t next = 0;
  for (LockedView& view : views) {
    for (LockedView::Contender& contender : view.contenders) {
      const zk::ReadResult& result = read[next++];
      if (result.code != zk::Code::kOk) contender.path.clear();
      contender.identifier = result.node.data;
    }
    std::erase_if(view.contenders, [](const auto& contender) { return contender.path.empty(); });
  }
}

}  // namespace

Task<std::vector<LockedView>> ReadLockedViews(Tree& tree, std::vector<NodeId> ids) {
  std::vector<zk::ReadOp> reads;
  for (const NodeId& id : ids) {
    reads.push_back({Kind::kData, paths::Node(id)});
    reads.push_back({Kind::kChildren, paths::NodeLock(id)});
  }
  std::vector<zk::ReadResult> nodes = co_await tree.client().ReadMany(std::move(reads));
  std::vector<LockedView> views(ids.size());
  std::vector<zk::ReadOp> contenders;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    zk::ReadResult& directory = nodes[2 * i + 1];
    views[i].id = ids[i];
    views[i].node = NodeIn(ids[i], nodes[2 * i], tree.Now());
    views[i].has_directory = directory.code == zk::Code::kOk;
    for (const std::string& name : zk::SortedContenders(std::move(directory.names))) {
      views[i].contenders.push_back({paths::NodeLock(ids[i]) + "/" + name, ""});
      contenders.push_back({Kind::kData, views[i].contenders.back().path});
    }
  }
  if (contenders.empty()) co_return views;
  std::vector<zk::ReadResult> identifiers = co_await tree.client().ReadMany(std::move(contenders));
  FillIdentifiers(views, identifiers);
  co_return views;
}

void AppendTake(std::vector<zk::Op>& ops, const LockedView& view, const std::string& owner, const Node& next,
                Random& random) {
  std::string directory = paths::NodeLock(view.id);
  if (!view.has_directory) ops.emplace_back(zk::CreateOp{directory, "", zk::CreateMode::kPersistent});
  ops.emplace_back(zk::CreateOp{directory + "/" + zk::ContenderPrefix(random), owner,
                                zk::CreateMode::kPersistentSequential});
  ops.emplace_back(zk::SetOp{paths::Node(view.id), ToJson(next), view.node->revision.version});
}

void AppendRelease(std::vector<zk::Op>& ops, const LockedView& view, const std::string& owner,
                   const std::function<Change(Node&)>& change) {
  if (view.is_locked_by(owner) && view.node) {
    Node next = view.node->record;
    if (change(next) == Change::kWrite)
      ops.emplace_back(zk::SetOp{paths::Node(view.id), ToJson(next), view.node->revision.version});
  }
  for (const LockedView::Contender& contender : view.contenders) {
    if (contender.identifier == owner) ops.emplace_back(zk::DeleteOp{contender.path, -1});
  }
}

}  // namespace nodepool::store
