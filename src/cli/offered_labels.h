#pragma once

#include <string>

#include "cli/command.h"
#include "cli/node_claim.h"

namespace nodepool::cli {

// "no launcher offers label smal; did you mean small?" for the first label that no registered pool offers, or
// the same of the provider; empty if all are offered, or if no pool is registered.
Task<std::string> FaultOfWish(Context& context, NodeWish wish);

}  // namespace nodepool::cli
