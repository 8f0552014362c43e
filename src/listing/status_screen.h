#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "listing/daemon_listing.h"
#include "listing/listing.h"
#include "listing/status_records.h"

// `nodepool status`: the state of everything on one screen.
namespace nodepool::listing {

// The keys of the parts in JSON, in their order: problems, the most urgent first (problem.h), then what the
// parts below show.
inline constexpr std::string_view kStatusParts[] = {"problems", "daemons", "providers", "pools",
                                                    "requests", "runners", "images"};

// A listing for each part.
std::vector<Listing> StatusParts(const StatusRecords& records, WaitingRows waiting, const PageOf& page_of);

// The problems, each with its remedy, since when it lasts, what it delays and how to see more, then a table
// for each other part that has rows, except the images: their problems are already listed. Without a line
// break at the end. If a width is given, no line is wider.
std::string ToStatusScreen(const std::vector<Listing>& parts, WallTime now, Colors colors,
                           std::optional<std::size_t> width);

// One object with a list for each part.
std::string ToStatusJson(const std::vector<Listing>& parts, WallTime now);

}  // namespace nodepool::listing
