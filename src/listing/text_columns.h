#pragma once

#include <string>
#include <vector>

#include "listing/listing.h"

namespace nodepool::listing {

// A column with the texts of all rows, as people read them.
struct TextColumn {
  Column column;
  std::vector<std::string> texts;
};

// The columns of the listing, ages as of `now`.
std::vector<TextColumn> TextsOf(const Listing& listing, WallTime now);

// The listing with amounts of resources in readable form: "cores 2, instances 1".
Listing ForPeople(Listing listing);

// Whether a terminal need not show the column: no row has a text in it. A list without rows keeps all its
// columns.
bool IsEmpty(const TextColumn& column);

}  // namespace nodepool::listing
