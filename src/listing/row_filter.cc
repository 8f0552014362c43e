#include "listing/row_filter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nodepool::listing {

const Column* Find(const std::vector<Column>& columns, Kind kind) {
  auto found = std::ranges::find(columns, kind, &Column::kind);
  return found == columns.end() ? nullptr : &*found;
}

std::string_view NameOf(Kind kind) {
  return std::ranges::find(kFilters, kind, [](const auto& filter) { return filter.first; })->second;
}

std::optional<FilterFault> FaultOf(const RowFilter& filter, const std::vector<Column>& columns) {
  for (const auto& [kind, words] : filter) {
    const Column* column = Find(columns, kind);
    if (column->words.empty()) continue;
    for (const std::string& word : words) {
      if (std::ranges::find(column->words, word) != column->words.end()) continue;
      std::vector<std::string> known(column->words.begin(), column->words.end());
      return FilterFault{
          kind, fmt::format("\"{}\" is no {}; there is {}", Excerpt(word), NameOf(kind), Join(known, ", "))};
    }
  }
  return std::nullopt;
}

bool HasOneOf(const Cell& cell, const std::set<std::string>& words) {
  if (std::optional<std::string_view> text = cell.text()) return words.contains(std::string(*text));
  if (cell.written()) return false;
  const boost::json::array* list = cell.value().if_array();
  auto is_one = [&](const boost::json::value& entry) { return HasOneOf(Cell::Of(entry), words); };
  return list != nullptr && std::ranges::any_of(*list, is_one);
}

void Keep(Listing& listing, const RowFilter& filter) {
  for (const auto& [kind, words] : filter) {
    std::ptrdiff_t place = Find(listing.columns, kind) - listing.columns.data();
    std::erase_if(listing.rows, [&](const std::vector<Cell>& row) {
      return !HasOneOf(row[static_cast<std::size_t>(place)], words);
    });
  }
}

}  // namespace nodepool::listing
