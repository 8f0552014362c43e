#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "listing/listing.h"

namespace nodepool::listing {

// Selects the rows whose cell of each kind in the map is one of the words, or is a list that contains one.
// The possible kinds are state, label and provider.
using RowFilter = std::map<Kind, std::set<std::string>>;

// The kinds that can be filtered by, and the names of their options and parameters.
inline constexpr std::pair<Kind, std::string_view> kFilters[] = {
    {Kind::kState, "state"}, {Kind::kLabel, "label"}, {Kind::kProvider, "provider"}};
std::string_view NameOf(Kind kind);

// The first column of the kind, or null.
const Column* Find(const std::vector<Column>& columns, Kind kind);

// Why a filter cannot match anything, as a message: for example a word that is not a state. Nothing if it
// can.
struct FilterFault {
  Kind kind;
  std::string message;
  bool operator==(const FilterFault&) const = default;
};
// Every kind in the filter must have a column.
std::optional<FilterFault> FaultOf(const RowFilter& filter, const std::vector<Column>& columns);

// Whether the text is one of the words, or the list has one.
bool HasOneOf(const Cell& cell, const std::set<std::string>& words);

// Retains only the rows that match; every kind in the filter must have a column.
void Keep(Listing& listing, const RowFilter& filter);

}  // namespace nodepool::listing
