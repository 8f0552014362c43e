#include "model/node_request.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <limits>
#include <utility>

#include "base/text.h"
#include "model/json.h"
#include "model/json_scanner.h"
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

namespace {

namespace json = boost::json;

constexpr std::string_view kKey = "decline_reasons";
constexpr std::size_t kMaxReason = 500;
constexpr std::size_t kMaxReasons = 100;

// Calls `member(key, value)` with the text of each; the key has its quotation marks.
template <class F>
void ForEachUnknown(const Foreign& foreign, F&& member) {
  if (foreign.unknown.empty()) return;
  std::string text = "{" + foreign.unknown + "}";
  JsonScanner in(text);
  in.Members([&](std::string_view key) {
    std::string_view value;
    if (!in.Value(value)) return false;
    member(key, value);
    return true;
  });
}

bool IsOurs(std::string_view written_key) { return written_key.substr(1, written_key.size() - 2) == kKey; }

std::vector<std::string> TextsIn(const RawJson& list) {
  std::vector<std::string> texts;
  const json::value value = list.value();
  if (!value.is_array()) return texts;
  for (const json::value& element : value.as_array()) {
    if (element.is_string()) texts.emplace_back(element.as_string());
  }
  return texts;
}

void Replace(Foreign& foreign, const std::vector<std::string>& reasons) {
  Foreign changed;
  ForEachUnknown(foreign, [&](std::string_view key, std::string_view value) {
    if (!IsOurs(key)) changed.AddWritten(key, value);
  });
  json::array list(reasons.begin(), reasons.end());
  changed.Add(kKey, std::move(list));
  foreign.unknown = std::move(changed.unknown);
}

}  // namespace

std::vector<std::string> DeclineReasons(const NodeRequest& request) {
  std::vector<std::string> reasons;
  ForEachUnknown(request.foreign, [&](std::string_view key, std::string_view value) {
    if (IsOurs(key)) reasons = TextsIn(RawJson::OfText(value));
  });
  return reasons;
}

void AddDeclineReason(NodeRequest& request, const std::string& reason) {
  if (reason.empty()) return;
  std::string line = reason;
  std::ranges::replace(line, '\n', ' ');
  line = Excerpt(line, kMaxReason);
  std::vector<std::string> reasons = DeclineReasons(request);
  if (reasons.size() >= kMaxReasons || std::ranges::find(reasons, line) != reasons.end()) return;
  reasons.push_back(std::move(line));
  Replace(request.foreign, reasons);
}

std::string WhyFailed(const NodeRequest& request) {
  std::vector<std::string> reasons = DeclineReasons(request);
  if (!reasons.empty()) return Join(reasons, "; ");
  if (request.declined_by.empty()) return "no launcher offers these labels together";
  return fmt::format("declined by {}", fmt::join(request.declined_by, ", "));
}

namespace {

constexpr std::array<std::pair<LeaseState, std::string_view>, 4> kWords = {{{LeaseState::kWaiting, "waiting"},
                                                                            {LeaseState::kHeld, "held"},
                                                                            {LeaseState::kFailed, "failed"},
                                                                            {LeaseState::kEnding, "ending"}}};
constexpr std::size_t kIdDigits = 32;
constexpr std::string_view kLeaseKey = "lease";
constexpr std::string_view kClientKey = "client";
constexpr std::string_view kHeldKey = "held";
constexpr Duration kFailedLasts = std::chrono::minutes(5);

json::object MarkOf(const LeaseId& id, const Lease& lease) {
  return {{kLeaseKey, id.value}, {kClientKey, lease.client}};
}

std::optional<LeaseId> MarkedLease(const RawJson& mark) {
  if (!mark.text().starts_with('{')) return std::nullopt;
  json::value data = mark.value();
  const json::object* object = data.if_object();
  const json::value* id = object ? object->if_contains(kLeaseKey) : nullptr;
  if (id == nullptr || !id->is_string() || !IsLeaseId(id->as_string())) return std::nullopt;
  return LeaseId(std::string(id->as_string()));
}

}  // namespace

std::string_view ToString(LeaseState state) {
  auto word = std::ranges::find(kWords, state, [](const auto& each) { return each.first; });
  return word == kWords.end() ? "" : word->second;
}

std::optional<LeaseState> ParseLeaseState(std::string_view text) {
  auto word = std::ranges::find(kWords, text, [](const auto& each) { return each.second; });
  if (word == kWords.end()) return std::nullopt;
  return word->first;
}

std::vector<std::string_view> LeaseStateWords() {
  std::vector<std::string_view> words;
  for (const auto& [state, word] : kWords) words.push_back(word);
  return words;
}

template <class Fields, RecordOf<Lease> T>
void EachField(Fields& fields, T& lease) {
  fields("state", lease.state, StateCodec<&ParseLeaseState>());
  fields("client", lease.client);
  fields("labels", lease.labels);
  fields("requestor", lease.requestor);
  fields("tenant_name", lease.tenant_name);
  fields("request", lease.request);
  fields("nodes", lease.nodes);
  fields("lease_seconds", lease.lease_seconds);
  fields("created_time", lease.created_time);
  fields("renewed_time", lease.renewed_time);
  fields("failure", lease.failure);
  fields("asked", lease.asked);
}

bool Lease::has_node(const NodeId& node) const { return std::ranges::find(nodes, node) != nodes.end(); }

Duration Lease::duration() const {
  Duration lasts = std::chrono::seconds(lease_seconds);
  return state == LeaseState::kFailed ? std::min(lasts, kFailedLasts) : lasts;
}

std::size_t Lease::node_count() const {
  if (state == LeaseState::kWaiting) return labels.size();
  return nodes.size();
}

Expected<Lease> ParseLease(std::string_view text) {
  Expected<Lease> lease = ReadRecord(text, Lease());
  if (!lease) return lease;
  if (!lease->state) return Unexpected(Verdict::kInvalid, "\"state\" is missing");
  if (lease->client.empty()) return Unexpected(Verdict::kInvalid, "\"client\" is missing");
  if (lease->lease_seconds <= 0) return Unexpected(Verdict::kInvalid, "\"lease_seconds\" is not positive");
  return lease;
}

std::string ToJson(const Lease& lease) { return WriteRecord(lease); }

bool IsLeaseId(std::string_view text) {
  auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == kIdDigits && std::ranges::all_of(text, is_digit);
}

std::string OwnerText(const LeaseId& id) { return "lease:" + id.value; }

void PutInUse(Node& node, const LeaseId& id, const Lease& lease, WallTime now) {
  node.SetState(NodeState::kInUse, now);
  node.user_data = MarkOf(id, lease);
}

void MarkHeld(Node& node) {
  json::value data = node.user_data.value();
  if (json::object* mark = data.if_object()) (*mark)[kHeldKey] = true;
  node.user_data = std::move(data);
}

std::optional<std::string> HolderOf(const Node& node) {
  if (node.state != NodeState::kHold || !MarkedLease(node.user_data)) return std::nullopt;
  json::value data = node.user_data.value();
  const json::object& mark = data.as_object();
  const json::value* held = mark.if_contains(kHeldKey);
  const json::value* client = mark.if_contains(kClientKey);
  bool is_marked = held != nullptr && *held == true && client != nullptr && client->is_string();
  return is_marked ? std::optional(std::string(client->as_string())) : std::nullopt;
}

NodeRequest RequestFor(const LeaseId& id, const Lease& lease, WallTime now) {
  NodeRequest request;
  request.SetState(RequestState::kRequested, now);
  request.created_time = now;
  request.node_types = lease.labels;
  request.requestor = lease.requestor;
  request.requestor_data = MarkOf(id, lease);
  request.tenant_name = lease.tenant_name;
  request.event_id = id.value;
  return request;
}

std::optional<LeaseId> LeaseOf(const Node& node) { return MarkedLease(node.user_data); }
std::optional<LeaseId> LeaseOf(const NodeRequest& request) { return MarkedLease(request.requestor_data); }

}  // namespace nodepool
