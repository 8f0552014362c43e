#include "model/node_request.h"

#include <algorithm>
#include <limits>

#include "model/json.h"
#include "model/record_reader.h"

namespace nodepool {
namespace {

namespace json = boost::json;

// Stands for a priority that is null or no number: such a request is served last
// instead of holding up the others (coordination.md 4.3). It fits in every
// reader's integer.
constexpr std::int64_t kWorstPriority = std::numeric_limits<std::int32_t>::max();

std::int64_t RelativePriority(RecordReader& reader) {
  const json::value* value = reader.Find("relative_priority");
  if (value == nullptr) return 0;
  return ToInteger(*value).value_or(kWorstPriority);
}

}  // namespace

bool NodeRequest::WasDeclinedBy(const LauncherId& launcher) const {
  return std::ranges::find(declined_by, launcher) != declined_by.end();
}

Expected<NodeRequest> ParseNodeRequest(std::string_view json, WallTime now) {
  RecordReader reader(json);
  NodeRequest request;
  reader.State(request.state, request.state_time, &ParseRequestState, now);
  request.declined_by = reader.IdTexts<LauncherId>("declined_by");
  request.node_types = reader.IdTexts<LabelName>("node_types");
  request.nodes = reader.IdTexts<NodeId>("nodes");
  request.reuse = reader.Flag("reuse", true);
  request.requestor = reader.Text("requestor");
  request.requestor_data = reader.Take("requestor_data");
  request.provider = reader.IdText<ProviderName>("provider");
  request.relative_priority = RelativePriority(reader);
  request.event_id = reader.Text("event_id");
  request.created_time = reader.Time("created_time");
  request.tenant_name = reader.Text("tenant_name");
  if (reader.error()) return std::unexpected(*reader.error());
  request.unknown = reader.TakeUnknown();
  return request;
}

std::string ToJson(const NodeRequest& request) {
  json::object record;
  if (request.state) record["state"] = ToString(*request.state);
  record["state_time"] = ToSeconds(request.state_time);
  record["declined_by"] = ToArray(request.declined_by);
  record["node_types"] = ToArray(request.node_types);
  record["nodes"] = ToArray(request.nodes);
  record["reuse"] = request.reuse;
  record["requestor"] = ToValue(request.requestor);
  record["requestor_data"] = request.requestor_data;
  record["provider"] = IdOrNull(request.provider);
  record["relative_priority"] = request.relative_priority;
  record["event_id"] = ToValue(request.event_id);
  record["created_time"] = ToValue(request.created_time);
  record["tenant_name"] = ToValue(request.tenant_name);
  AddUnknown(request.unknown, record);
  return WriteJson(record);
}

std::optional<RequestIdParts> ParseRequestId(const RequestId& id) {
  std::size_t dash = id.value.find('-');
  if (dash == std::string::npos || dash != id.value.rfind('-')) return std::nullopt;
  RequestIdParts parts{id.value.substr(0, dash), id.value.substr(dash + 1)};
  if (parts.precedence.empty() || parts.sequence.empty()) return std::nullopt;
  return parts;
}

}  // namespace nodepool
