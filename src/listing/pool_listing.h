#pragma once

#include <map>
#include <string>

#include "listing/configured.h"
#include "listing/listing.h"
#include "model/component.h"
#include "store/cache/node_cache.h"
#include "store/cache/record_cache.h"

namespace nodepool::listing {

std::vector<Column> PoolColumns();

// A row for each pool that is configured, registered or has nodes, by provider and name: whether a launcher
// serves it, and its nodes. "paused": every launcher that serves it waits for capacity; "failing": none of
// them can use the provider, or the breaker of pool or provider is open.
Listing ListPools(const Configured& configured, const std::map<std::string, Component>& components,
                  const store::NodeCache& nodes, const store::RecordCache<Breaker>& breakers);

}  // namespace nodepool::listing
