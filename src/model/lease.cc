#include "model/lease.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/record_fields.h"

namespace nodepool {
namespace {

namespace json = boost::json;

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
