#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/command.h"

namespace nodepool::cli {

// "no launcher offers label smal; did you mean small?" of the first label that no registered pool
// has; empty when there is none, and while no pool is registered at all.
Task<std::string> FaultOfLabels(Context& context, std::vector<LabelName> labels);

}  // namespace nodepool::cli
