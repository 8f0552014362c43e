#pragma once

#include <optional>
#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// How a list is printed.
struct Page {
  Output output = Output::kTable;
  WallTime now{};  // ages are computed for this time
  listing::Colors colors = listing::Colors::kNone;
  std::optional<std::size_t> width;  // tables are fitted to it; nothing: they are not fitted
  bool is_detailed = false;          // rows that do not fit become blocks, which have all columns
};

// The terminal's width, if `context.out` is a terminal, and the current time.
Page PageOf(const Context& context, Output output);

// The listing as text, without a line break at its end. Below a fitted table, a line names the omitted
// columns (operations.md 5.3).
std::string TextOf(const listing::Listing& listing, const Page& page);

}  // namespace nodepool::cli
