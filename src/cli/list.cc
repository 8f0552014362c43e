#include "cli/list.h"

#include <ostream>

namespace nodepool::cli {

Task<int> List(Context& context, NodeColumns columns, Output output) {
  std::map<NodeId, store::StoredNode> found = co_await ReadNodes(context);
  std::vector<store::StoredNode> nodes;
  for (auto& [id, node] : found) nodes.push_back(std::move(node));
  Listing listing = ListNodes(nodes, columns, context.loop.Now());
  if (output == Output::kJson) {
    context.out << ToJson(listing) << '\n';
  } else {
    context.out << ToTable(listing, context.loop.Now()) << '\n';
  }
  co_return 0;
}

}  // namespace nodepool::cli
