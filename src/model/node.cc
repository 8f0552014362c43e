#include "model/node.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "model/json.h"
#include "model/record_reader.h"

namespace nodepool {
namespace {

namespace json = boost::json;

// No machine has this much of anything, and sums of many stay exact.
constexpr double kMostOfAResource = 1e9;

// A bare text is a list of one; null and "" are the empty list (coordination.md 4.4).
std::vector<LabelName> Labels(RecordReader& reader) {
  const json::value* value = reader.Find("type");
  if (value == nullptr || !value->is_string()) return reader.IdTexts<LabelName>("type");
  LabelName label = reader.IdText<LabelName>("type");
  if (label.empty()) return {};
  return {std::move(label)};
}

// The whole of `text`, blanks around it aside, as an integer; 0 when it is none.
std::int64_t IntegerOrZero(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\f\v";
  std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return 0;
  text = text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

std::optional<std::int64_t> HoldExpiration(RecordReader& reader) {
  const json::value* value = reader.FindUnlessNull("hold_expiration");
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return IntegerOrZero(value->get_string());
  if (value->is_bool()) return value->get_bool() ? 1 : 0;
  return ToInteger(*value).value_or(0);
}

json::value Port(RecordReader& reader) {
  const json::value* ssh_port = reader.Find("ssh_port");
  const json::value* port = reader.Find("connection_port");
  if (port == nullptr) port = ssh_port;
  return port == nullptr ? json::value(22) : *port;
}

// Members that are null (or were not finite) are left out.
std::optional<Resources> ReadResources(RecordReader& reader) {
  const json::value* value = reader.FindUnlessNull("resources");
  if (value == nullptr) return std::nullopt;
  Resources resources;
  constexpr std::string_view kExpected = "an object of amounts between 0 and 1e9";
  if (!value->is_object()) {
    reader.Fail("resources", kExpected);
    return std::nullopt;
  }
  for (const auto& [name, amount] : value->get_object()) {
    if (amount.is_null()) continue;
    double number = amount.is_number() ? amount.to_number<double>() : -1;
    if (number < 0 || number > kMostOfAResource) {
      reader.Fail("resources", kExpected);
      return std::nullopt;
    }
    resources[std::string(name)] = number;
  }
  return resources;
}

json::value ToValue(const std::optional<Resources>& resources) {
  if (!resources) return nullptr;
  json::object object;
  for (const auto& [name, amount] : *resources) {
    // Whole amounts are written as integers, as every reader expects of counts.
    bool is_whole = amount == std::floor(amount) && std::abs(amount) <= kMostOfAResource;
    object[name] = is_whole ? json::value(static_cast<std::int64_t>(amount)) : json::value(amount);
  }
  return object;
}

json::array ToArray(const std::vector<std::string>& texts) { return json::array(texts.begin(), texts.end()); }

}  // namespace

bool Node::has_label(const LabelName& label) const { return std::ranges::find(type, label) != type.end(); }

Expected<Node> ParseNode(std::string_view json, WallTime now) {
  RecordReader reader(json);
  Node node;
  reader.State(node.state, node.state_time, &ParseNodeState, now);
  node.cloud = reader.Text("cloud");
  node.provider = reader.IdText<ProviderName>("provider");
  node.pool = reader.IdText<PoolName>("pool");
  node.type = Labels(reader);
  node.allocated_to = reader.IdText<RequestId>("allocated_to");
  node.az = reader.Text("az");
  node.region = reader.Text("region");
  node.public_ipv4 = reader.Text("public_ipv4");
  node.private_ipv4 = reader.Text("private_ipv4");
  node.public_ipv6 = reader.Text("public_ipv6");
  node.host_id = reader.Text("host_id");
  node.interface_ip = reader.Text("interface_ip");
  node.connection_port = Port(reader);
  node.image_id = reader.Text("image_id");
  node.launcher = reader.Text("launcher");
  node.created_time = reader.Time("created_time");
  node.external_id = reader.Take("external_id");
  node.hostname = reader.Text("hostname");
  node.comment = reader.Text("comment");
  node.user_data = reader.Take("user_data");
  node.hold_job = reader.Text("hold_job");
  node.host_keys = reader.Texts("host_keys");
  node.username = reader.TextOr("username", "zuul");
  node.connection_type = reader.Text("connection_type");
  node.shell_type = reader.Text("shell_type");
  node.hold_expiration = HoldExpiration(reader);
  node.resources = ReadResources(reader);
  node.slot = reader.Integer("slot");
  node.attributes = reader.Take("attributes");
  node.python_path = reader.Text("python_path");
  node.tenant_name = reader.Text("tenant_name");
  node.driver_data = reader.Take("driver_data");
  node.requestor = reader.Text("requestor");
  if (reader.error()) return std::unexpected(*reader.error());
  node.unknown = reader.TakeUnknown();
  return node;
}

std::string ToJson(const Node& node) {
  json::object record;
  if (node.state) record["state"] = ToString(*node.state);
  record["state_time"] = ToSeconds(node.state_time);
  record["cloud"] = ToValue(node.cloud);
  record["provider"] = IdOrNull(node.provider);
  record["pool"] = IdOrNull(node.pool);
  record["type"] = ToArray(node.type);
  record["allocated_to"] = IdOrNull(node.allocated_to);
  record["az"] = ToValue(node.az);
  record["region"] = ToValue(node.region);
  record["public_ipv4"] = ToValue(node.public_ipv4);
  record["private_ipv4"] = ToValue(node.private_ipv4);
  record["public_ipv6"] = ToValue(node.public_ipv6);
  record["host_id"] = ToValue(node.host_id);
  record["interface_ip"] = ToValue(node.interface_ip);
  record["connection_port"] = node.connection_port;
  record["ssh_port"] = node.connection_port;
  record["image_id"] = ToValue(node.image_id);
  record["launcher"] = ToValue(node.launcher);
  record["created_time"] = ToValue(node.created_time);
  record["external_id"] = node.external_id;
  record["hostname"] = ToValue(node.hostname);
  record["comment"] = ToValue(node.comment);
  record["user_data"] = node.user_data;
  record["hold_job"] = ToValue(node.hold_job);
  record["host_keys"] = ToArray(node.host_keys);
  record["username"] = ToValue(node.username);
  record["connection_type"] = ToValue(node.connection_type);
  record["shell_type"] = ToValue(node.shell_type);
  record["hold_expiration"] = ToValue(node.hold_expiration);
  record["resources"] = ToValue(node.resources);
  record["slot"] = ToValue(node.slot);
  record["attributes"] = node.attributes;
  record["python_path"] = ToValue(node.python_path);
  record["tenant_name"] = ToValue(node.tenant_name);
  record["driver_data"] = node.driver_data;
  record["requestor"] = ToValue(node.requestor);
  AddUnknown(node.unknown, record);
  return WriteJson(record);
}

}  // namespace nodepool
