#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
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

// Which records may have a row that a filter selects, by their text alone: most records need not be parsed.
// For lists whose rows show a record each, with what they are filtered by as it is in the record.
class RecordFilter {
 public:
  // Records that have one of the `also` words may matter, too.
  RecordFilter(const RowFilter& filter, const std::set<std::string>& also);

  // Whether the record has a word of each kind that the filter restricts, perhaps elsewhere than in that
  // field.
  bool MayMatch(std::string_view record) const;

 private:
  using Words = std::vector<std::string>;  // as JSON has them

  static bool HasOneOf(std::string_view record, const Words& words);

  std::vector<Words> kinds_;  // that restrict something
  Words also_;
};

// The keys of the columns that are given by their keys or titles, in lower or upper case. Error(kInvalid) if
// a column does not exist; its message lists the columns.
Expected<std::vector<std::string>> KeysOf(const std::vector<std::string>& names,
                                          const std::vector<Column>& columns);

// Retains only the columns with these keys, in this order.
void KeepColumns(Listing& listing, const std::vector<std::string>& keys);

// Removes the columns with Column::is_extra.
void DropExtraColumns(Listing& listing);

}  // namespace nodepool::listing
