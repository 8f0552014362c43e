#pragma once

#include "cli/show_listing.h"

namespace nodepool::cli {

enum class RequestColumns {
  kBrief,     // the columns of operations.md 5.4
  kDetail,    // also age, tenant, why pools declined it and, queried from the launchers, what decides that it
              // waits
  kAllPools,  // the same, with what each pool says
};

// `nodepool request-list [--detail]`: every request, by id; in detail followed by those that failed and were
// deleted in the last hour, as the launchers remember them. The reasons are lines of text in tables, and the
// launchers' answers in JSON.
ListingCommand RequestListing(RequestColumns columns, Output output);

}  // namespace nodepool::cli
