#pragma once

#include "cli/show_listing.h"

namespace nodepool::cli {

enum class RequestColumns {
  kBrief,   // the columns of operations.md 5.4
  kDetail,  // also age, tenant and, queried from the launchers, why the request waits
};

// `nodepool request-list [--detail]`: every request, by id. The reasons are lines of text in tables, and the
// launchers' answers in JSON.
ListingCommand RequestListing(RequestColumns columns, Output output);

}  // namespace nodepool::cli
