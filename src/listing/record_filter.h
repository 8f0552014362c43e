#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "listing/row_filter.h"

namespace nodepool::listing {

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

}  // namespace nodepool::listing
