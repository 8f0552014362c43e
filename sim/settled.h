#pragma once

#include <optional>

#include "sim/inspector.h"

namespace nodepool::sim {

// The first thing that is not as it should be when nothing goes on any more; nullopt:
// everything is. Only min-ready may be owed, and only while there is no room for it.
std::optional<Inspector::Violation> FindUnsettled(const Scenario& scenario, const Inspector& inspector,
                                                  Clouds& clouds);

}  // namespace nodepool::sim
