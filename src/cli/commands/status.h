#pragma once

#include "cli/show_listing.h"

namespace nodepool::cli {

// `nodepool status`: the state of everything, the most urgent problems first. If requests wait, queries the
// launchers why. A table lists the ten that have waited longest.
ListingCommand StatusListing(Output output);

}  // namespace nodepool::cli
