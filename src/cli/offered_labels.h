#pragma once

#include <string>

#include "cli/command.h"
#include "cli/node_claim.h"

namespace nodepool::cli {

// sched::FaultOfLabels() of what is registered now, and the same of the provider.
Task<std::string> FaultOfWish(Context& context, NodeWish wish);

}  // namespace nodepool::cli
