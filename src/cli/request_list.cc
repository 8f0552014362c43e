#include "cli/request_list.h"

#include <algorithm>
#include <ostream>

#include "base/text.h"
#include "cli/launcher_query.h"
#include "listing/request_listing.h"
#include "model/json_cells.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;
using listing::Listing;

// One line for each pool that said why.
std::string WaitText(const json::array& waits) {
  auto text_of = [](const json::object& wait, std::string_view key) {
    const json::value* value = wait.if_contains(key);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
  };
  std::vector<std::string> lines;
  for (const json::value& wait : waits) {
    const json::object& reason = wait.as_object();
    std::string line =
        text_of(reason, "provider") + " " + text_of(reason, "pool") + ": " + text_of(reason, "text");
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return Join(lines, "\n");
}

// Adds the columns of --detail.
void AddDetail(Listing& listing, const std::map<RequestId, store::StoredRequest>& requests,
               const WaitsByRequest& waits, Output output) {
  listing.columns.insert(listing.columns.end(),
                         {{"age", "Age"}, {"tenant_name", "Tenant"}, {"waits", "Waits For"}});
  auto row = listing.rows.begin();
  for (const auto& [id, request] : requests) {
    row->push_back(ToSeconds(request.record.created_time.value_or(request.record.state_time)));
    row->push_back(JsonText(request.record.tenant_name));
    auto found = waits.find(id);
    json::array reasons = found == waits.end() ? json::array() : found->second;
    row->push_back(output == Output::kJson ? json::value(std::move(reasons))
                                           : json::value(WaitText(reasons)));
    ++row;
  }
}

}  // namespace

Task<int> RequestList(Context& context, RequestColumns columns, Output output) {
  std::map<RequestId, store::StoredRequest> requests = co_await ReadRequests(context);
  Listing listing = listing::ListRequests(requests);
  if (columns == RequestColumns::kDetail) {
    WaitsByRequest waits = co_await AskWhyRequestsWait(context);
    AddDetail(listing, requests, waits, output);
  }
  Print(context, listing, output);
  co_return 0;
}

}  // namespace nodepool::cli
