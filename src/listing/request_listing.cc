#include "listing/request_listing.h"

#include "model/json.h"

namespace nodepool::listing {

std::vector<Column> RequestColumns() {
  return {{"id", "Request ID"},
          {"relative_priority", "Priority"},
          {"state", "State", Kind::kState, RequestStateWords()},
          {"requestor", "Requestor"},
          {"node_types", "Node Types", Kind::kLabel},
          {"nodes", "Nodes"},
          {"declined_by", "Declined By"},
          {"event_id", "Event ID"}};
}

Listing ListRequests(const std::map<RequestId, store::StoredRequest>& requests) {
  Listing listing{RequestColumns(), {}};
  for (const auto& [id, request] : requests) {
    const NodeRequest& record = request.record;
    listing.rows.push_back({id.value, NumberValue(record.relative_priority), StateCell(record.state),
                            TextCell(record.requestor), JsonNames(record.node_types), JsonNames(record.nodes),
                            JsonNames(record.declined_by), TextCell(record.event_id)});
  }
  return listing;
}

}  // namespace nodepool::listing
