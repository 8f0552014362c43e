#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace nodepool::cli {

// sched::FaultOfLabels() of what is registered now.
Task<std::string> FaultOfLabels(Context& context, std::vector<LabelName> labels);

}  // namespace nodepool::cli
