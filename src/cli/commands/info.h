#pragma once

#include "cli/show_listing.h"

namespace nodepool::cli {

// `nodepool info PROVIDER`: the records of one provider in ZooKeeper: the builds that it has or is to have,
// and its nodes. An unknown provider gives empty tables (operations.md 5.4).
ListingCommand InfoListing(ProviderName provider);

}  // namespace nodepool::cli
