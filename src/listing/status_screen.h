#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "listing/listing.h"
#include "listing/status_records.h"

// `nodepool status`: how everything is, on one screen.
namespace nodepool::listing {

// The keys of the parts in JSON, in their order: what to look at first, and what the parts below it show.
inline constexpr std::string_view kStatusParts[] = {"look_at_first", "daemons",  "providers",
                                                    "pools",         "requests", "images"};

// A listing for each part. Of requests that wait the `most` oldest ones are listed.
std::vector<Listing> StatusParts(const StatusRecords& records, std::size_t most);

// The parts below each other, without a line break at the end; those that have no rows are left out. With a
// width no line is wider.
std::string ToStatusScreen(const std::vector<Listing>& parts, WallTime now, Colors colors,
                           std::optional<std::size_t> width);

// One object with a list for each part.
std::string ToStatusJson(const std::vector<Listing>& parts, WallTime now);

}  // namespace nodepool::listing
