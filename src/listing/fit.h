#pragma once

#include <optional>
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

// Tables that fit the width of a terminal: columns that are empty in every row are omitted, UUIDs and long
// names cut, and then the least important columns omitted.

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

struct FittedTable {
  std::string text;
  std::vector<std::string> left_out;  // titles of omitted columns that have texts
  bool is_whole = true;               // nothing was cut or omitted
};

// The listing as a table of at most `width` terminal columns.
FittedTable FitTable(const Listing& listing, WallTime now, Colors colors, std::size_t width,
                     Frame frame = Frame::kBars);

// The rows as blocks of lines `Title: text`, with an empty line between two, for rows of more columns than a
// terminal of this width has place for. What is empty is omitted, sentences are broken at blanks, nothing is
// cut.
std::string ToBlocks(const Listing& listing, WallTime now, Colors colors, std::size_t width);

}  // namespace nodepool::listing
