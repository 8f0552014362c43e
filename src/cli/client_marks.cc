#include "cli/client_marks.h"

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

}  // namespace nodepool::cli
