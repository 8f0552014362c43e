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

// What to look at first, then a table for each other part that has rows, but for the images: what is wrong
// with them has been said. Without a line break at the end. With a width no line is wider.
std::string ToStatusScreen(const std::vector<Listing>& parts, WallTime now, Colors colors,
                           std::optional<std::size_t> width);

// One object with a list for each part.
std::string ToStatusJson(const std::vector<Listing>& parts, WallTime now);

}  // namespace nodepool::listing
