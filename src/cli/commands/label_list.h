#pragma once

#include "cli/show_listing.h"

namespace nodepool::cli {

// `nodepool label-list`: every label, the pools that offer it, its nodes and the requests that wait for it.
ListingCommand LabelListing();

}  // namespace nodepool::cli
