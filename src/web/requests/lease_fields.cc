#include "web/requests/lease_fields.h"

#include <algorithm>
#include <boost/json/value_from.hpp>

#include "listing/node_listing.h"
#include "web/api/api_fields.h"

namespace nodepool::web {
namespace {

namespace json = boost::json;

struct NodeEntry {
  const store::StoredNode& node;
  bool is_own = false;
};

json::value PortOf(const NodeEntry& entry) {
  if (entry.is_own) return entry.node.record.connection_port.value();
  return listing::ShownPort(entry.node.record);
}

template <class OptionalText>
FieldTable<NodeEntry>::Field TextField(std::string key, OptionalText Node::*member, std::string text) {
  return {{std::move(key), Text().OrNull(), std::move(text)},
          [member](const NodeEntry& n) { return TextCell(n.node.record.*member); }};
}

const FieldTable<NodeEntry>& NodeEntryFields() {
  static const FieldTable<NodeEntry> fields({
      {{"id", Text(), "ten digits"}, [](const NodeEntry& n) { return Cell::OfText(n.node.id.value); }},
      {{"labels", ListOf(Text()), "that the node serves"},
       [](const NodeEntry& n) { return JsonNames(n.node.record.type); }},
      TextField("interface_ip", &Node::interface_ip, "the address to connect to"),
      TextField("public_ipv4", &Node::public_ipv4, "where it has one"),
      TextField("private_ipv4", &Node::private_ipv4, "where it has one"),
      TextField("public_ipv6", &Node::public_ipv6, "where it has one"),
      TextField("hostname", &Node::hostname, "as the cloud reports it"),
      TextField("connection_type", &Node::connection_type, "ssh, winrm ..."),
      {{"connection_port", Any(), "a number, or an object with access data"}, &PortOf},
      {{"host_keys", ListOf(Text()), "of its SSH server"},
       [](const NodeEntry& n) { return json::value_from(n.node.record.host_keys); }},
      TextField("username", &Node::username, "to log in with"),
      TextField("python_path", &Node::python_path, "of the Python on it, for Ansible"),
      TextField("shell_type", &Node::shell_type, "of its shell, for Ansible"),
      {{"attributes", Any(), "as configured for the pool"},
       [](const NodeEntry& n) { return n.node.record.attributes.value(); }},
      {{"provider", Text().OrNull(), "where it is"},
       [](const NodeEntry& n) { return TextOrNull(n.node.record.provider.value); }},
      TextField("cloud", &Node::cloud, "the name of the cloud in the configuration of its driver"),
      TextField("region", &Node::region, "of the cloud"),
      TextField("az", &Node::az, "availability zone"),
      TextField("image", &Node::image_id, "the cloud's image, or the upload's path"),
  });
  return fields;
}

// A node that the cache does not have any more is about to be dropped.
json::value NodesOf(const LeaseEntry& entry) {
  json::array nodes;
  for (const NodeId& id : entry.lease.record.nodes) {
    const store::StoredNode* node = entry.launcher.records().nodes.Find(id);
    if (node != nullptr) nodes.push_back(NodeEntryFields().ToJson({*node, entry.is_own}));
  }
  return nodes;
}

// Nullopt: it has no request, or none any more.
std::optional<launcher::RequestStatus> StatusOf(const LeaseEntry& entry) {
  const RequestId& request = entry.lease.record.request;
  return request.empty() ? std::nullopt : entry.launcher.FindRequest(request);
}

json::value DecidingReasonOf(const LeaseEntry& entry) {
  std::optional<launcher::RequestStatus> status = StatusOf(entry);
  return ReasonValue(status ? status->reason : std::nullopt);
}

json::value WaitsOf(const LeaseEntry& entry) {
  json::array waits;
  std::optional<launcher::RequestStatus> status = StatusOf(entry);
  if (!status) return waits;
  for (const launcher::WaitReason& reason : status->waits) waits.push_back(WaitFields().ToJson(reason));
  return waits;
}

// Null while no launcher has accepted the request.
json::value ReadyOf(const LeaseEntry& entry) {
  const store::Caches& records = entry.launcher.records();
  const RequestId& id = entry.lease.record.request;
  const store::StoredRequest* request = id.empty() ? nullptr : records.requests.Find(id);
  if (request == nullptr || request->record.state != RequestState::kPending) return {};
  auto is_ready = [&](const NodeId& node) {
    return records.nodes.Find(node)->record.state == NodeState::kReady;
  };
  return std::ranges::count_if(records.nodes.OfRequest(id), is_ready);
}

json::value SecondsOrNull(const std::optional<WallTime>& time) {
  return time ? json::value(ToSeconds(*time)) : json::value();
}

}  // namespace

const FieldTable<LeaseEntry>& LeaseFields() {
  static const FieldTable<LeaseEntry> fields({
      {{"id", Text(), "32 hex digits"}, [](const LeaseEntry& l) { return Cell::OfText(l.lease.id.value); }},
      {{"state", OneOf(LeaseStateWords()), "what is true of the lease", false, listing::Kind::kState},
       [](const LeaseEntry& l) { return StateCell(l.lease.record.state); }},
      {{"client", Text(), "name of the token that made it"},
       [](const LeaseEntry& l) { return Cell::OfText(l.lease.record.client); }},
      {{"labels", ListOf(Text()), "one for each node", false, listing::Kind::kLabel},
       [](const LeaseEntry& l) { return JsonNames(l.lease.record.labels); }},
      {{"requestor", Text().OrNull(), "as its client gave it, else the token's name"},
       [](const LeaseEntry& l) { return TextCell(l.lease.record.requestor); }},
      {{"tenant", Text().OrNull(), "whose quota counts"},
       [](const LeaseEntry& l) { return TextCell(l.lease.record.tenant_name); }},
      {{"request", Text().OrNull(), "id of the node request, while it waits"},
       [](const LeaseEntry& l) { return TextOrNull(l.lease.record.request.value); }},
      {{"lease", Whole(), "seconds that it lasts without a renewal"},
       [](const LeaseEntry& l) { return json::value(l.lease.record.lease_seconds); }},
      {{"created", Number().OrNull(), "seconds since the epoch"},
       [](const LeaseEntry& l) { return SecondsOrNull(l.lease.record.created_time); }},
      {{"renewed", Number().OrNull(), "seconds since the epoch"},
       [](const LeaseEntry& l) { return SecondsOrNull(l.lease.record.renewed_time); }},
      {{"failure", Text().OrNull(), "why it failed"},
       [](const LeaseEntry& l) { return TextCell(l.lease.record.failure); }},
      {{"waits", ListOf(WaitFields().type()), "why it waits, as each pool of this launcher says"}, &WaitsOf},
      {{"reason", ReasonType().OrNull(), "what decides that it waits, as in /api/v1/requests"},
       &DecidingReasonOf},
      {{"ready", Whole().OrNull(), "of a request that a launcher has accepted: how many nodes are ready"},
       &ReadyOf},
      {{"nodes", ListOf(NodeEntryFields().type()), "of a held lease"}, &NodesOf},
  });
  return fields;
}

}  // namespace nodepool::web
