#pragma once

#include <map>
#include <string>
#include <vector>

#include "listing/listing.h"
#include "model/component.h"
#include "store/cache/node_cache.h"

namespace nodepool::listing {

// What the state of a provider is that no launcher serves.
inline constexpr std::string_view kUnserved = "unserved";

std::vector<Column> ProviderColumns();

// A row for each provider and each launcher that serves it, for as long as that is there. `drivers` are the
// configured providers; those that only launchers know are shown, too.
Listing ListProviders(const std::map<ProviderName, std::string>& drivers,
                      const std::map<std::string, Component>& components, const store::NodeCache& nodes);

}  // namespace nodepool::listing
