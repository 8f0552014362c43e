#include "model/node.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "model/record_fields.h"

namespace nodepool {
namespace {

// A bare text is a list of one, "" the empty list; a list is always written (coordination.md 4.4).
struct LabelsCodec : Codec<std::vector<LabelName>> {
  static Reading Read(std::string_view written, std::vector<LabelName>& labels) {
    if (written[0] != '"') return Codec<std::vector<LabelName>>::Read(written, labels);
    LabelName label;
    codec::ReadStrictText(written, label.value);
    labels.clear();
    if (!label.empty()) labels.push_back(std::move(label));
    return Reading::kOurs;
  }
};

// The whole of `text`, without blanks around it, as an integer; 0 when it is not one.
std::int64_t IntegerOrZero(std::string_view text) {
  text = Trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

// Any value but null is converted to an integer, and written as one.
struct HoldExpirationCodec : Codec<std::optional<std::int64_t>> {
  static Reading Read(std::string_view written, std::optional<std::int64_t>& seconds) {
    bool is_wrong = Codec<std::optional<std::int64_t>>::Read(written, seconds) == Reading::kWrong;
    if (is_wrong) seconds = written[0] == '"' ? IntegerOrZero(DecodeJsonText(written)) : written == "true";
    return Reading::kOurs;
  }
};

// Anything but an amount is no price.
struct PriceCodec {
  static constexpr std::string_view kExpected = "a number or null";
  static Reading Read(std::string_view written, std::optional<double>& price) {
    price = codec::FiniteNumber(written);
    if (price && (*price < 0 || *price > 1e9)) price.reset();
    return Reading::kOther;
  }
  static void Write(std::string& out, const std::optional<double>& price) { codec::WriteNumber(out, *price); }
  static bool IsUnset(const std::optional<double>& price) { return !price; }
};

}  // namespace

template <class Fields, RecordOf<Node> T>
void EachField(Fields& fields, T& node) {
  fields("state", node.state, StateCodec<&ParseNodeState>());
  fields("state_time", node.state_time);
  fields("cloud", node.cloud);
  fields("provider", node.provider);
  fields("pool", node.pool);
  fields("type", node.type, LabelsCodec());
  fields("allocated_to", node.allocated_to);
  fields("az", node.az);
  fields("region", node.region);
  fields("public_ipv4", node.public_ipv4);
  fields("private_ipv4", node.private_ipv4);
  fields("public_ipv6", node.public_ipv6);
  fields("host_id", node.host_id);
  fields("interface_ip", node.interface_ip);
  fields("connection_port", node.connection_port);
  fields.Older("ssh_port", node.connection_port);
  fields("image_id", node.image_id);
  fields("launcher", node.launcher);
  fields("created_time", node.created_time);
  fields("external_id", node.external_id);
  fields("hostname", node.hostname);
  fields("comment", node.comment);
  fields("user_data", node.user_data);
  fields("hold_job", node.hold_job);
  fields("host_keys", node.host_keys);
  fields("username", node.username);
  fields("connection_type", node.connection_type);
  fields("shell_type", node.shell_type);
  fields("hold_expiration", node.hold_expiration, HoldExpirationCodec());
  fields("resources", node.resources);
  fields("slot", node.slot);
  fields("attributes", node.attributes);
  fields("python_path", node.python_path);
  fields("tenant_name", node.tenant_name);
  fields("driver_data", node.driver_data);
  fields("requestor", node.requestor);
  fields("hourly_price", node.hourly_price, PriceCodec());
}

bool Node::has_label(const LabelName& label) const { return std::ranges::find(type, label) != type.end(); }

Expected<Node> ParseNode(std::string_view json, WallTime now) {
  Node node;
  node.state_time = now;
  return ReadRecord(json, std::move(node));
}

std::string ToJson(const Node& node) { return WriteRecord(node); }

}  // namespace nodepool
