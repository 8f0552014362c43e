#pragma once

#include <optional>
#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// What a list is printed on.
struct Page {
  Output output = Output::kTable;
  WallTime now{};  // ages are as they are then
  listing::Colors colors = listing::Colors::kNone;
  std::optional<std::size_t> width;  // tables are fitted to it; nothing: they are as wide as they are
};

// As wide as the terminal, where `context.out` is one; ages as they are now.
Page PageOf(const Context& context, Output output);

// The listing on the page, without a line break at its end. Below a table that is fitted a line names the
// columns that have no room.
std::string TextOf(const listing::Listing& listing, const Page& page);

}  // namespace nodepool::cli
