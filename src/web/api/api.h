#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/launcher.h"
#include "listing/selection.h"
#include "web/api/open_api.h"
#include "web/lists/recent_answers.h"
#include "web/router.h"

namespace nodepool::web {

// A client's query: which entries of a resource to return.
struct Query {
  // The largest page.
  static constexpr std::size_t kMaxEntries = 10'000;

  listing::RowFilter filter;
  std::size_t limit = kMaxEntries;
  std::string after;  // only entries that come after this one; empty: all
};

// Parses the query of a request for entries with these fields. An empty value restricts nothing.
// Error(kInvalid): an unknown parameter or a wrong value.
Expected<Query> ReadQuery(const Request& request, const std::vector<FieldDoc>& fields);

// The parameters that ReadQuery knows, for a resource that returns at most `max` entries.
std::vector<ParameterDoc> ParametersOf(const std::vector<FieldDoc>& fields,
                                       std::size_t max = Query::kMaxEntries);

// Whether the entry matches the filter: every kind in it has a field.
template <class T>
bool IsAskedFor(const FieldTable<T>& fields, const T& entry, const listing::RowFilter& filter) {
  return std::ranges::all_of(filter, [&](const auto& asked) {
    auto field =
        std::ranges::find(fields.fields(), asked.first, [](const auto& each) { return each.doc.asked_as; });
    return listing::HasOneOf(field->value(entry), asked.second);
  });
}

// The endpoints under /api/v1, for programs: {"nodes": [...], "is_complete": true} and likewise requests,
// images, builds, uploads, providers and components, from the launcher's caches alone. Queries select entries
// as the command line does: ?state=, ?label=, ?provider=, each repeatable and only if the entries have it,
// and ?limit=. Of nodes and requests ?after= is the next page. An unknown parameter is 400. The launcher
// outlives them.
std::vector<Endpoint> ApiEndpoints(const launcher::Launcher& launcher, std::shared_ptr<RecentAnswers> recent);

}  // namespace nodepool::web
