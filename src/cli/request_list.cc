#include "cli/request_list.h"

#include <ostream>

#include "cli/listing.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;

template <class Id>
json::array Names(const std::vector<Id>& ids) {
  json::array names;
  for (const Id& id : ids) names.emplace_back(id.value);
  return names;
}

json::value Text(const std::optional<std::string>& text) { return text ? json::value(*text) : json::value(); }

}  // namespace

Task<int> RequestList(Context& context, Output output) {
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
                            Text(record.requestor), Names(record.node_types), Names(record.nodes),
                            Names(record.declined_by), Text(record.event_id)});
  }
  if (output == Output::kJson) {
    context.out << ToJson(listing) << '\n';
  } else {
    context.out << ToTable(listing, context.loop.Now()) << '\n';
  }
  co_return 0;
}

}  // namespace nodepool::cli
