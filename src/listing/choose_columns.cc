#include "listing/choose_columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nodepool::listing {

Expected<std::vector<std::string>> KeysOf(const std::vector<std::string>& names,
                                          const std::vector<Column>& columns) {
  std::vector<std::string> keys;
  for (const std::string& name : names) {
    std::string wanted = Lower(Trim(name));
    auto found = std::ranges::find_if(columns, [&](const Column& column) {
      bool is_time = !column.since.empty() && wanted == column.since;
      return is_time || wanted == Lower(column.key) || wanted == Lower(column.title);
    });
    if (found == columns.end()) {
      std::vector<std::string> known;
      for (const Column& column : columns) known.push_back(column.key);
      return Unexpected(Verdict::kInvalid, fmt::format("there is no column \"{}\"; there is {}",
                                                       Excerpt(name), Join(known, ", ")));
    }
    keys.push_back(found->key);
  }
  return keys;
}

void KeepColumns(Listing& listing, const std::vector<std::string>& keys) {
  std::vector<std::size_t> places;
  Listing kept;
  for (const std::string& key : keys) {
    auto found = std::ranges::find(listing.columns, key, &Column::key);
    places.push_back(static_cast<std::size_t>(found - listing.columns.begin()));
    kept.columns.push_back(*found);
  }
  for (const std::vector<Cell>& row : listing.rows) {
    std::vector<Cell>& cells = kept.rows.emplace_back();
    for (std::size_t place : places) cells.push_back(row[place]);
  }
  listing = std::move(kept);
}

void DropExtraColumns(Listing& listing) {
  if (std::ranges::none_of(listing.columns, &Column::is_extra)) return;
  std::vector<std::string> keys;
  for (const Column& column : listing.columns) {
    if (!column.is_extra) keys.push_back(column.key);
  }
  KeepColumns(listing, keys);
}

}  // namespace nodepool::listing
