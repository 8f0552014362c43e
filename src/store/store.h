#pragma once

#include "store/breakers.h"
#include "store/components.h"
#include "store/images.h"
#include "store/jobs.h"
#include "store/leases.h"
#include "store/nodes.h"
#include "store/provider_pauses.h"
#include "store/requests.h"
#include "store/runners.h"
#include "store/tree.h"

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
