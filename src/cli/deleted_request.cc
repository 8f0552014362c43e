#include "cli/deleted_request.h"

#include "model/decline_reasons.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;

std::optional<std::string> TextIn(const json::object& entry, std::string_view key) {
  const json::value* value = entry.if_contains(key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->as_string());
}

double NumberIn(const json::object& entry, std::string_view key) {
  const json::value* value = entry.if_contains(key);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

std::vector<std::string> TextsIn(const json::object& entry, std::string_view key) {
  std::vector<std::string> texts;
  const json::value* value = entry.if_contains(key);
  if (value == nullptr || !value->is_array()) return texts;
  for (const json::value& element : value->as_array()) {
    if (element.is_string()) texts.emplace_back(element.as_string());
  }
  return texts;
}

}  // namespace

bool IsDeleted(const json::object& entry) {
  const json::value* value = entry.if_contains("is_deleted");
  return value != nullptr && value->is_bool() && value->as_bool();
}

store::StoredRequest DeletedRequest(const RequestId& id, const json::object& entry, WallTime now) {
  store::StoredRequest request;
  request.id = id;
  NodeRequest& record = request.record;
  record.state = ParseRequestState(TextIn(entry, "state").value_or(""));
  record.created_time = FromSeconds(ToSeconds(now) - NumberIn(entry, "age"));
  record.relative_priority = NumberIn(entry, "priority");
  record.requestor = TextIn(entry, "requestor");
  record.tenant_name = TextIn(entry, "tenant");
  record.event_id = TextIn(entry, "event_id");
  for (std::string& label : TextsIn(entry, "labels")) record.node_types.emplace_back(std::move(label));
  for (std::string& launcher : TextsIn(entry, "declined_by"))
    record.declined_by.emplace_back(std::move(launcher));
  for (const std::string& reason : TextsIn(entry, "decline_reasons")) AddDeclineReason(record, reason);
  return request;
}

}  // namespace nodepool::cli
