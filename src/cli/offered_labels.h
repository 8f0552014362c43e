#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/command.h"

namespace nodepool::cli {

// "no launcher offers label smal; did you mean small?" for the first label that no registered pool offers;
// empty if all are offered, or if no pool is registered.
Task<std::string> FaultOfLabels(Context& context, std::vector<LabelName> labels);

}  // namespace nodepool::cli
