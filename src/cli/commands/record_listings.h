#pragma once

#include "cli/show_listing.h"
#include "listing/image_listing.h"
#include "listing/node_listing.h"

namespace nodepool::cli {

// `nodepool list [--detail]`: every node, by id (operations.md 5.4).
ListingCommand NodeListing(listing::NodeColumns columns);

// `nodepool provider-list`: every configured provider, and what launchers report about it (D-30).
ListingCommand ProviderListing();

// `nodepool dib-image-list`, `image-list [--detail]` and `image-status`.
ListingCommand BuildListing();
ListingCommand UploadListing(listing::UploadDetail detail = listing::UploadDetail::kBrief);
ListingCommand ImageStatusListing();

}  // namespace nodepool::cli
