#pragma once

#include "store/images.h"
#include "store/leases.h"
#include "store/locked_records.h"
#include "store/tree.h"
#include "store/unlocked_records.h"

namespace nodepool::store {

// Typed records in ZooKeeper: the only place that knows paths.
//
//   std::optional<LockedNode> node = co_await store.nodes.TryLock(id);
struct Store {
  Store(Loop& loop, zk::Client& client, Random& random) : tree(loop, client, random) {}

  Tree tree;
  Requests requests{tree};
  Nodes nodes{tree};
  Images images{tree};
  Jobs jobs{tree};
  Leases leases{tree};
  ProviderPauses provider_pauses{tree};
  Breakers breakers{tree};
  Components components{tree};
  Runners runners{tree};
};

}  // namespace nodepool::store
