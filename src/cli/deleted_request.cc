#include "cli/deleted_request.h"

#include "base/json_fields.h"
#include "cli/answer_fields.h"
#include "model/decline_reasons.h"

namespace nodepool::cli {
namespace json = boost::json;

bool IsDeleted(const json::object& entry) { return TruthIn(entry, "is_deleted"); }

store::StoredRequest DeletedRequest(const RequestId& id, const json::object& entry, WallTime now) {
  store::StoredRequest request;
  request.id = id;
  NodeRequest& record = request.record;
  record.state = ParseRequestState(OptionalTextIn(entry, "state").value_or(""));
  record.created_time = FromSeconds(ToSeconds(now) - NumberIn(entry, "age"));
  record.relative_priority = NumberIn(entry, "priority");
  record.requestor = OptionalTextIn(entry, "requestor");
  record.tenant_name = OptionalTextIn(entry, "tenant");
  record.event_id = OptionalTextIn(entry, "event_id");
  for (std::string& label : TextsIn(entry, "labels")) record.node_types.emplace_back(std::move(label));
  for (std::string& launcher : TextsIn(entry, "declined_by"))
    record.declined_by.emplace_back(std::move(launcher));
  for (const std::string& reason : TextsIn(entry, "decline_reasons")) AddDeclineReason(record, reason);
  return request;
}

}  // namespace nodepool::cli
