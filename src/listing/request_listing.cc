#include "listing/request_listing.h"

#include "model/json.h"

namespace nodepool::listing {

std::vector<Column> RequestColumns() {
  return {{.key = "id", .title = "Request ID", .fit = {Importance::kAlways}},
          {.key = "relative_priority", .title = "Priority", .fit = {Importance::kLow}},
          {.key = "state",
           .title = "State",
           .kind = Kind::kState,
           .words = RequestStateWords(),
           .fit = {Importance::kHigh}},
          {.key = "requestor", .title = "Requestor", .fit = {Importance::kMedium, 9}},
          {.key = "node_types", .title = "Node Types", .kind = Kind::kLabel, .fit = kName},
          {.key = "nodes", .title = "Nodes", .fit = {Importance::kMedium, 10}},
          {.key = "declined_by", .title = "Declined By", .fit = {Importance::kLow, 12}},
          {.key = "event_id", .title = "Event ID", .fit = kLongId}};
}

std::vector<Cell> RequestRow(const store::StoredRequest& request) {
  const NodeRequest& record = request.record;
  return {request.id.value,
          NumberValue(record.relative_priority),
          StateCell(record.state),
          TextCell(record.requestor),
          JsonNames(record.node_types),
          JsonNames(record.nodes),
          JsonNames(record.declined_by),
          TextCell(record.event_id)};
}

Listing ListRequests(const std::map<RequestId, store::StoredRequest>& requests) {
  Listing listing{RequestColumns(), {}};
  for (const auto& [id, request] : requests) listing.rows.push_back(RequestRow(request));
  return listing;
}

}  // namespace nodepool::listing
