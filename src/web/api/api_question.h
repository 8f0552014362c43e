#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "listing/row_filter.h"
#include "web/router.h"

namespace nodepool::web {

// Which entries of a resource somebody asks for.
struct Question {
  // More would keep the loop busy for too long.
  static constexpr std::size_t kMostEntries = 10'000;

  listing::RowFilter filter;
  std::size_t limit = kMostEntries;
};

// Reads the query of a request for entries of these fields. A value that is empty
// restricts nothing. Error(kInvalid): a parameter that there is not, or a wrong value.
Expected<Question> ReadQuestion(const Request& request, const std::vector<FieldDoc>& fields);

// The parameters that ReadQuestion knows.
std::vector<ParameterDoc> ParametersOf(const std::vector<FieldDoc>& fields);

}  // namespace nodepool::web
