#include "cli/list.h"

namespace nodepool::cli {

Task<int> List(Context& context, listing::NodeColumns columns, Output output) {
  std::map<NodeId, store::StoredNode> found = co_await ReadNodes(context);
  std::vector<const store::StoredNode*> nodes;
  for (const auto& [id, node] : found) nodes.push_back(&node);
  Print(context, ListNodes(nodes, columns, context.loop.Now()), output);
  co_return 0;
}

}  // namespace nodepool::cli
