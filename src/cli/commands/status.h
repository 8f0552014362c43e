#pragma once

#include "cli/show_listing.h"

namespace nodepool::cli {

// `nodepool status`: how everything is, and what to look at first. Asks the launchers why requests wait, when
// some do. A table lists the ten that wait for longest.
ListingCommand StatusListing(Output output);

}  // namespace nodepool::cli
