#pragma once

#include "cli/command.h"
#include "listing/node_listing.h"

namespace nodepool::cli {

// `nodepool list [--detail] [--json]`: every node, by id (operations.md 5.4).
Task<int> List(Context& context, listing::NodeColumns columns, Output output);

}  // namespace nodepool::cli
