#include "model/node_request.h"

#include <algorithm>
#include <limits>

#include "model/record_fields.h"

namespace nodepool {
namespace {

// Replaces a priority that is not a number: such a request is served last instead of blocking the
// others (coordination.md 4.3). It fits in every reader's integer.
constexpr double kWorstPriority = std::numeric_limits<std::int32_t>::max();

struct PriorityCodec {
  static constexpr std::string_view kExpected = "a number";
  static Reading Read(std::string_view written, double& priority) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    priority = codec::FiniteNumber(written).value_or(written == "Infinity"    ? kInfinity
                                                     : written == "-Infinity" ? -kInfinity
                                                                              : kWorstPriority);
    return Reading::kOther;
  }
  static void Write(std::string& out, double priority) { codec::WriteNumber(out, priority); }
};

bool IsNegativeNumber(std::string_view text) {
  if (!text.starts_with('-') || text.size() == 1) return false;
  return text.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

}  // namespace

template <class Fields, RecordOf<NodeRequest> T>
void EachField(Fields& fields, T& request) {
  fields("state", request.state, StateCodec<&ParseRequestState>());
  fields("state_time", request.state_time);
  fields("declined_by", request.declined_by);
  fields("node_types", request.node_types);
  fields("nodes", request.nodes);
  fields("reuse", request.reuse);
  fields("requestor", request.requestor);
  fields("requestor_data", request.requestor_data);
  fields("provider", request.provider);
  fields("relative_priority", request.relative_priority, PriorityCodec());
  fields("event_id", request.event_id);
  fields("created_time", request.created_time);
  fields("tenant_name", request.tenant_name);
}

bool NodeRequest::WasDeclinedBy(const LauncherId& launcher) const {
  return std::ranges::find(declined_by, launcher) != declined_by.end();
}

Expected<NodeRequest> ParseNodeRequest(std::string_view json, WallTime now) {
  NodeRequest request;
  request.state_time = now;
  return ReadRecord(json, std::move(request));
}

std::string ToJson(const NodeRequest& request) { return WriteRecord(request); }

std::optional<RequestIdParts> ParseRequestId(const RequestId& id) {
  std::size_t dash = id.value.find('-');
  if (dash == std::string::npos) return std::nullopt;
  RequestIdParts parts{id.value.substr(0, dash), id.value.substr(dash + 1)};
  if (parts.precedence.empty() || parts.sequence.empty()) return std::nullopt;
  bool has_another_dash = parts.sequence.find('-') != std::string::npos;
  if (has_another_dash && !IsNegativeNumber(parts.sequence)) return std::nullopt;
  return parts;
}

}  // namespace nodepool
