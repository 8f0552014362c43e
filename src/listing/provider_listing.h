#pragma once

#include <map>
#include <string>
#include <vector>

#include "listing/listing.h"
#include "model/component.h"
#include "store/cache/node_cache.h"
#include "store/cache/record_cache.h"

namespace nodepool::listing {

// The state of a provider that no launcher serves.
inline constexpr std::string_view kUnserved = "unserved";
// The state of one that an operator has paused and that could else be used.
inline constexpr std::string_view kPausedProvider = "paused";

std::vector<Column> ProviderColumns();

// A row for each provider and each launcher that serves it while the launcher is registered. `drivers` are
// the configured providers; providers that only launchers know are also shown, and those whose only trace is
// that they are paused. One whose breaker is open is failing; the reason of one that can be used names all
// its open breakers.
Listing ListProviders(const std::map<ProviderName, std::string>& drivers,
                      const std::map<std::string, Component>& components, const store::NodeCache& nodes,
                      const store::RecordCache<ProviderPause>& pauses,
                      const store::RecordCache<Breaker>& breakers);

}  // namespace nodepool::listing
