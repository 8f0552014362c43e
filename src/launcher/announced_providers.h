#pragma once

#include <map>

#include "launcher/status.h"
#include "store/cache/caches.h"

namespace nodepool::launcher {

// The providers of all launchers as far as their announcements and the records say: state, fault, limit,
// pools and labels, nodes and what they use; not what only the launcher knows, such as its launches. Where
// launchers do not agree on the state of one, a fault counts first.
std::map<ProviderName, ProviderStatus> AnnouncedProviders(const store::Caches& records);

// The open breakers of the provider, the widest first.
std::vector<std::pair<BreakerKey, Breaker>> OpenBreakersOf(const store::RecordCache<Breaker>& breakers,
                                                           const ProviderName& provider);

}  // namespace nodepool::launcher
