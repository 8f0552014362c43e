#pragma once

#include <optional>
#include <string>
#include <vector>

#include "listing/listing.h"
#include "listing/table.h"

// Tables that fit the width of a terminal: columns that are empty in every row are left out, UUIDs and long
// names cut, and then the least important columns left out.
namespace nodepool::listing {

// The width of a column's widest text, its title among them, and of the title alone.
struct Extent {
  Fit fit;
  std::size_t width;
  std::size_t title;
};

// How wide each column is shown so that a line takes at most `width`; nothing: not at all. The more important
// ones come first, among equals the left ones; one of Importance::kAlways is shown even if the line gets too
// wide. No column is cut below its title, nor while another one that may be cut is wider.
std::vector<std::optional<std::size_t>> FitColumns(const std::vector<Extent>& columns, std::size_t width,
                                                   Frame frame);

struct FittedTable {
  std::string text;
  std::vector<std::string> left_out;  // titles of columns that have texts, but no room
};

// The listing as a table of at most `width` terminal columns.
FittedTable FitTable(const Listing& listing, WallTime now, Colors colors, std::size_t width,
                     Frame frame = Frame::kBars);

}  // namespace nodepool::listing
