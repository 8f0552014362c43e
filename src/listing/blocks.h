#pragma once

#include <string>

#include "listing/listing.h"

namespace nodepool::listing {

// The rows as blocks of lines `Title: text`, with an empty line between two, for rows of more columns than a
// terminal of this width has place for. What is empty is omitted, sentences are broken at blanks, nothing is
// cut.
std::string ToBlocks(const Listing& listing, WallTime now, Colors colors, std::size_t width);

}  // namespace nodepool::listing
