#include "cli/server/lease_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <iterator>

#include "base/json_fields.h"
#include "base/text.h"
#include "cli/answer_fields.h"
#include "cli/launcher_query.h"
#include "operate/nodes.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;

constexpr double kMaxLeaseSeconds = 86'400;
constexpr std::size_t kMaxNodes = 100;

std::unexpected<Error> Malformed(std::string_view what) {
  return Unexpected(Verdict::kInvalid, fmt::format("The server's answer is not that of Nodepool: {}", what));
}

Node NodeOf(const json::object& entry) {
  Node node;
  for (const std::string& label : TextsIn(entry, "labels")) node.type.emplace_back(Visible(label));
  node.interface_ip = OptionalTextIn(entry, "interface_ip");
  node.connection_type = OptionalTextIn(entry, "connection_type");
  node.username = OptionalTextIn(entry, "username");
  if (const json::value* port = entry.if_contains("connection_port")) node.connection_port = *port;
  node.host_keys = TextsIn(entry, "host_keys");
  return node;
}

Expected<std::vector<ClaimedNode>> NodesIn(const json::object& lease) {
  std::vector<ClaimedNode> nodes;
  const json::array* entries = ArrayIn(lease, "nodes");
  if (entries == nullptr || entries->size() > kMaxNodes) return Malformed("nodes");
  for (const json::value& value : *entries) {
    const json::object* entry = value.if_object();
    std::string text = entry == nullptr ? "" : TextIn(*entry, "id");
    std::optional<NodeId> id = operate::ParseNodeId(text);
    if (!id || id->value != text) return Malformed("the id of a node");
    nodes.push_back({std::move(*id), NodeOf(*entry)});
  }
  return nodes;
}

// Of a server of an older version, of the reasons of its pools.
std::string WhyIn(const json::object& lease) {
  if (const json::object* reason = ObjectIn(lease, "reason")) return Visible(TextIn(*reason, "text"));
  json::array reasons;
  if (const json::array* waits = ArrayIn(lease, "waits")) {
    std::ranges::copy_if(*waits, std::back_inserter(reasons), &json::value::is_object);
  }
  return DecidingText(reasons);
}

std::optional<std::size_t> ReadyIn(const json::object& lease) {
  const json::value* ready = lease.if_contains("ready");
  bool is_number = ready != nullptr && ready->is_int64() && ready->as_int64() >= 0;
  return is_number ? std::optional(static_cast<std::size_t>(ready->as_int64())) : std::nullopt;
}

}  // namespace

Expected<LeaseView> ReadLeaseView(std::string_view answer) {
  boost::system::error_code error;
  json::value parsed = json::parse(answer, error);
  if (error || !parsed.is_object()) return Malformed("it is no JSON object");
  const json::object& lease = parsed.as_object();
  LeaseView view;
  view.id = LeaseId(TextIn(lease, "id"));
  if (!IsLeaseId(view.id.value)) return Malformed("id");
  std::optional<LeaseState> state = ParseLeaseState(TextIn(lease, "state"));
  if (!state) return Malformed("state");
  view.state = *state;
  double seconds = NumberIn(lease, "lease");
  if (!(seconds >= 1 && seconds <= kMaxLeaseSeconds)) return Malformed("lease");
  view.lasts = std::chrono::seconds(static_cast<std::int64_t>(seconds));
  Expected<std::vector<ClaimedNode>> nodes = NodesIn(lease);
  if (!nodes) return std::unexpected(nodes.error());
  view.nodes = std::move(*nodes);
  view.failure = Visible(TextIn(lease, "failure"));
  view.ready = ReadyIn(lease);
  view.why = WhyIn(lease);
  return view;
}

}  // namespace nodepool::cli
