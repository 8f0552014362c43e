#pragma once

#include <set>
#include <string>
#include <vector>

#include "model/component.h"

namespace nodepool::sched {

// "no launcher offers label smal; did you mean small?" for the first label that no registered pool offers.
// Empty: all are offered, or that cannot be known: no pool is registered, or a launcher is only starting, and
// may offer it (http-requests.md 3). `configured` are labels of pools that are known although they are not
// registered, and `known` the providers that have them.
std::string FaultOfLabels(const std::vector<LabelName>& labels,
                          const std::vector<const Component*>& components,
                          const std::set<LabelName>& configured = {},
                          const std::set<ProviderName>& known = {});

}  // namespace nodepool::sched
