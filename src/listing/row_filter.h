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

// Which rows are wanted: those whose cell of each kind named here is one of the words, or
// lists one. Kinds that can be asked for: state, label, provider.
using RowFilter = std::map<Kind, std::set<std::string>>;

// The kinds that can be asked for and what options and parameters call them.
inline constexpr std::pair<Kind, std::string_view> kFilters[] = {
    {Kind::kState, "state"}, {Kind::kLabel, "label"}, {Kind::kProvider, "provider"}};
std::string_view NameOf(Kind kind);

// The first column of the kind, or null.
const Column* Find(const std::vector<Column>& columns, Kind kind);

// Why nothing can be found by a filter, for a person: a word is no state. Nothing when it can.
struct FilterFault {
  Kind kind;
  std::string message;
  bool operator==(const FilterFault&) const = default;
};
// Every kind that is asked for has a column.
std::optional<FilterFault> FaultOf(const RowFilter& filter, const std::vector<Column>& columns);

// Whether the text is one of the words, or the list has one.
bool HasOneOf(const Cell& cell, const std::set<std::string>& words);

// Leaves the wanted rows; every kind that is asked for has a column.
void Keep(Listing& listing, const RowFilter& filter);

}  // namespace nodepool::listing
