#include "cli/own_requests.h"

#include <map>

#include "listing/waiting_listing.h"
#include "model/json.h"

namespace nodepool::cli {

namespace {

namespace json = boost::json;

constexpr std::string_view kTool = "nodepool request";

const json::value* Find(const json::value& value, std::string_view key) {
  const json::object* object = value.if_object();
  return object ? object->if_contains(key) : nullptr;
}

bool NamesUser(const json::value& mark, const std::string& user) {
  const json::value* name = Find(mark, "user");
  return name && name->is_string() && name->as_string() == user;
}

}  // namespace

void MarkRequest(NodeRequest& request, const std::string& user) {
  request.requestor_data = json::object({{"tool", kTool}, {"user", user}});
}

bool IsMarked(const NodeRequest& request) {
  const json::value data = request.requestor_data.value();
  const json::value* tool = Find(data, "tool");
  return tool && tool->is_string() && tool->as_string() == kTool;
}

bool IsMarkedBy(const NodeRequest& request, const std::string& user) {
  return IsMarked(request) && NamesUser(request.requestor_data.value(), user);
}

void MarkNode(Node& node, const RequestId& request, const std::string& user) {
  node.user_data = json::object({{"nodepool_request", request.value}, {"user", user}, {"release", false}});
}

bool IsMarked(const Node& node) { return Find(node.user_data.value(), "nodepool_request") != nullptr; }

bool IsMarkedBy(const Node& node, const std::string& user) {
  return IsMarked(node) && NamesUser(node.user_data.value(), user);
}

RequestId RequestIn(const Node& node) {
  const json::value data = node.user_data.value();
  const json::value* id = Find(data, "nodepool_request");
  return RequestId(id != nullptr && id->is_string() ? std::string(id->as_string()) : "");
}

void AskForRelease(Node& node) {
  json::value data = node.user_data.value();
  data.as_object()["release"] = true;
  node.user_data = std::move(data);
}

bool IsReleaseRequested(const Node& node) {
  const json::value data = node.user_data.value();
  const json::value* release = Find(data, "release");
  return IsMarked(node) && release && release->is_bool() && release->as_bool();
}

namespace {

using listing::Importance;
using listing::Listing;

template <class Ids>
boost::json::array NamesOf(const Ids& ids) {
  boost::json::array names;
  for (const auto& id : ids) names.emplace_back(id.value);
  return names;
}

}  // namespace

Task<std::vector<OwnRequest>> OwnRequests(Context& context, const store::NodeCache& nodes) {
  std::vector<OwnRequest> requests;
  std::set<RequestId> seen;
  std::vector<RequestId> ids = co_await context.store.requests.List();
  for (const RequestId& id : ids) {
    std::optional<store::StoredRequest> request = co_await context.store.requests.Read(id);
    if (!request || !IsMarkedBy(request->record, context.user)) continue;
    const NodeRequest& record = request->record;
    const store::FewNodes& allocated = nodes.OfRequest(id);
    requests.push_back({.id = id,
                        .is_there = true,
                        .state = record.state ? std::string(ToString(*record.state)) : "",
                        .labels = {record.node_types.begin(), record.node_types.end()},
                        .nodes = {allocated.begin(), allocated.end()},
                        .since = listing::WaitsSince(record)});
    seen.insert(id);
  }
  std::map<RequestId, OwnRequest> without_record;
  for (const auto& [id, node] : nodes.all()) {
    const Node& record = node.record;
    if (record.state != NodeState::kInUse || !IsMarkedBy(record, context.user)) continue;
    RequestId request = RequestIn(record);
    if (seen.contains(request)) continue;
    OwnRequest& own = without_record[request];
    own.id = request;
    own.state = ToString(NodeState::kInUse);
    own.labels.insert(record.type.begin(), record.type.end());
    own.nodes.insert(id);
    own.since = record.state_time;
  }
  for (auto& [id, own] : without_record) requests.push_back(std::move(own));
  co_return requests;
}

Listing ListOwnRequests(const std::vector<OwnRequest>& requests) {
  Listing listing{
      {{.key = "id", .title = "Request", .fit = {Importance::kAlways}},
       {.key = "state", .title = "State", .kind = listing::Kind::kState, .fit = {Importance::kHigh}},
       {.key = "labels", .title = "Labels", .kind = listing::Kind::kLabel, .fit = listing::kName},
       {.key = "nodes", .title = "Nodes", .fit = {Importance::kHigh, 10}},
       {.key = "age", .title = "Age", .kind = listing::Kind::kTime, .fit = {Importance::kHigh}}},
      {}};
  for (const OwnRequest& own : requests) {
    listing.rows.push_back(
        {own.id.value, own.state, NamesOf(own.labels), NamesOf(own.nodes), ToSeconds(own.since)});
  }
  return listing;
}

}  // namespace nodepool::cli
