#pragma once

#include "cli/console.h"
#include "cli/node_claim.h"

namespace nodepool::cli {

// Obtains the claim's nodes and shows meanwhile why there are none: on a terminal a line that is kept current
// and removed at the end, else a log line when the deciding reason changes, once a minute at most.
Task<> ObtainShowingWhy(Console& console, NodeClaim& claim);

}  // namespace nodepool::cli
