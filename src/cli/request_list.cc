#include "cli/request_list.h"

#include <algorithm>
#include <ostream>

#include "base/text.h"
#include "cli/launcher_query.h"
#include "cli/listing.h"
#include "model/json_cells.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;

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
  Listing listing{{{"id", "Request ID"},
                   {"relative_priority", "Priority"},
                   {"state", "State"},
                   {"requestor", "Requestor"},
                   {"node_types", "Node Types"},
                   {"nodes", "Nodes"},
                   {"declined_by", "Declined By"},
                   {"event_id", "Event ID"}},
                  {}};
  std::map<RequestId, store::StoredRequest> requests = co_await ReadRequests(context);
  for (const auto& [id, request] : requests) {
    const NodeRequest& record = request.record;
    listing.rows.push_back({id.value, record.relative_priority,
                            record.state ? json::value(ToString(*record.state)) : json::value(),
                            JsonText(record.requestor), JsonNames(record.node_types), JsonNames(record.nodes),
                            JsonNames(record.declined_by), JsonText(record.event_id)});
  }
  if (columns == RequestColumns::kDetail) {
    WaitsByRequest waits = co_await AskWhyRequestsWait(context);
    AddDetail(listing, requests, waits, output);
  }
  if (output == Output::kJson) {
    context.out << ToJson(listing) << '\n';
  } else {
    context.out << ToTable(listing, context.loop.Now()) << '\n';
  }
  co_return 0;
}

}  // namespace nodepool::cli
