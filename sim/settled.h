#pragma once

#include <optional>

#include "sim/inspector.h"

namespace nodepool::sim {

// The first record or machine that is not in its final state after all work has ended; nullopt: all are. Only
// min-ready nodes may be missing, and only while there is no capacity for them.
std::optional<Inspector::Violation> FindUnsettled(const Scenario& scenario, const Inspector& inspector,
                                                  Clouds& clouds);

}  // namespace nodepool::sim
