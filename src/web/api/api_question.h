#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "listing/row_filter.h"
#include "web/router.h"

namespace nodepool::web {

// A client's query: which entries of a resource to return.
struct Query {
  // More would block the loop for too long.
  static constexpr std::size_t kMaxEntries = 10'000;

  listing::RowFilter filter;
  std::size_t limit = kMaxEntries;
};

// Parses the query of a request for entries with these fields. An empty value restricts nothing.
// Error(kInvalid): an unknown parameter or a wrong value.
Expected<Query> ReadQuery(const Request& request, const std::vector<FieldDoc>& fields);

// The parameters that ReadQuery knows.
std::vector<ParameterDoc> ParametersOf(const std::vector<FieldDoc>& fields);

}  // namespace nodepool::web
