#include "cli/erase.h"

#include <ostream>

#include "store/erase.h"

namespace nodepool::cli {

Task<int> Erase(Context& context, ProviderName provider, bool is_forced) {
  std::vector<NodeId> nodes = co_await store::NodesOf(context.store, provider);
  if (!is_forced) {
    context.out << "\nWARNING! This action is not reversible!\nErase ZooKeeper data for provider "
                << provider.value << "? [N/y] " << std::flush;
    std::string answer = co_await context.read_line();
    if (answer != "y" && answer != "Y") {
      context.out << "Aborting. No data erased.\n";
      co_return 0;
    }
  }
  context.out << "Erasing build data for " << provider.value << "...\n" << std::flush;
  co_await store::EraseUploads(context.store, provider);
  context.out << "Erasing node data for " << provider.value << "...\n" << std::flush;
  WallTime now = context.loop.Now();
  for (const NodeId& id : nodes) co_await store::EraseNode(context.store, id, now);
  co_return 0;
}

}  // namespace nodepool::cli
