#pragma once

#include "cli/show_listing.h"

namespace nodepool::cli {

// `nodepool info PROVIDER`: what ZooKeeper knows about one provider, the builds that it
// has or is to have and its nodes; an unknown provider gives empty tables
// (operations.md 5.4).
ListingCommand InfoListing(ProviderName provider);

}  // namespace nodepool::cli
