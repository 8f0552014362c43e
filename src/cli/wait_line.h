#pragma once

#include <ostream>

#include "cli/console.h"
#include "cli/node_claim.h"

namespace nodepool::cli {

// Keeps a line about why a claim has no nodes yet current on a terminal until it is cancelled, and removes it
// then.
Task<> ShowWaitLine(Console& console, NodeClaim& claim, std::ostream& terminal);

}  // namespace nodepool::cli
