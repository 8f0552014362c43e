#pragma once

#include "cli/show_listing.h"

namespace nodepool::cli {

enum class RequestColumns {
  kBrief,   // those of operations.md 5.4
  kDetail,  // also age, tenant and, asked of the launchers, why the request waits
};

// `nodepool request-list [--detail]`: every request, by id. For tables the reasons are
// lines of text, for JSON what the launchers answered.
ListingCommand RequestListing(RequestColumns columns, Output output);

}  // namespace nodepool::cli
