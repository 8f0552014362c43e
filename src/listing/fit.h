#pragma once

#include <optional>
#include <string>
#include <vector>

#include "listing/listing.h"
#include "listing/table.h"

// Tables that fit the width of a terminal: columns that are empty in every row are omitted, UUIDs and long
// names cut, and then the least important columns omitted.
namespace nodepool::listing {

// The width of a column's widest text, including its title, and of the title alone.
struct Extent {
  Fit fit;
  std::size_t width;
  std::size_t title;
};

// The width of each column such that a line takes at most `width`; nothing: the column is omitted. More
// important columns take precedence, among equals those on the left; a column of Importance::kAlways is shown
// even if the line gets too wide. No column is cut below the width of its title, nor while another one that
// may be cut is wider.
std::vector<std::optional<std::size_t>> FitColumns(const std::vector<Extent>& columns, std::size_t width,
                                                   Frame frame);

// The listing with amounts of resources in readable form: "cores 2, instances 1".
Listing ForPeople(Listing listing);

struct FittedTable {
  std::string text;
  std::vector<std::string> left_out;  // titles of omitted columns that have texts
};

// The listing as a table of at most `width` terminal columns.
FittedTable FitTable(const Listing& listing, WallTime now, Colors colors, std::size_t width,
                     Frame frame = Frame::kBars);

}  // namespace nodepool::listing
