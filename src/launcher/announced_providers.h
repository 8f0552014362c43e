#pragma once

#include <map>

#include "launcher/records.h"
#include "launcher/status.h"

namespace nodepool::launcher {

// The providers of all launchers as far as their announcements and the records say: state, fault, limit,
// pools and labels, nodes and what they use; not what only the launcher knows, such as its launches. Where
// launchers do not agree on the state of one, a fault counts first.
std::map<ProviderName, ProviderStatus> AnnouncedProviders(const Records& records);

}  // namespace nodepool::launcher
