#include "listing/node_listing.h"
#include "model/cell.h"
#include "web/api/api_fields.h"

namespace nodepool::web {

namespace json = boost::json;
using listing::Kind;
using store::StoredNode;

const FieldTable<StoredNode>& NodeFields() {
  static const FieldTable<StoredNode> fields({
      {{.key = "id", .type = Text(), .text = "ten digits", .is_order = true},
       [](const StoredNode& n) { return Cell::OfText(n.id.value); }},
      {{"state", OneOf(NodeStateWords()).OrNull(), "what the node is in its life", false, Kind::kState},
       [](const StoredNode& n) { return StateCell(n.record.state); }},
      {{"state_age", Whole(), "seconds since it came into this state"},
       [](const StoredNode& n) { return Cell::Since(n.record.state_time); }},
      {{"age", Whole(), "seconds since its record was made"},
       [](const StoredNode& n) { return Cell::Since(n.record.created_time.value_or(n.revision.created)); }},
      {{"is_locked", Flag(), "a client has its lock, or waits for it"},
       [](const StoredNode& n) { return json::value(n.is_locked()); }},
      {{"provider", Text().OrNull(), "where it is", false, Kind::kProvider},
       [](const StoredNode& n) { return TextOrNull(n.record.provider.value); }},
      {{"pool", Text().OrNull(), "of the provider"},
       [](const StoredNode& n) { return TextOrNull(n.record.pool.value); }},
      {{"labels", ListOf(Text()), "that it serves", false, Kind::kLabel},
       [](const StoredNode& n) { return JsonNames(n.record.type); }},
      {{"launcher", Text().OrNull(), "the pool worker that launched it"},
       [](const StoredNode& n) { return TextCell(n.record.launcher); }},
      {{"allocated_to", Text().OrNull(), "id of the request that has it"},
       [](const StoredNode& n) { return TextOrNull(n.record.allocated_to.value); }},
      {{"requestor", Text().OrNull(), "of its request: the client"},
       [](const StoredNode& n) { return TextCell(n.record.requestor); }},
      {{"tenant", Text().OrNull(), "of its request"},
       [](const StoredNode& n) { return TextCell(n.record.tenant_name); }},
      {{"server_id", Any(), "the cloud's id of the machine, as the driver keeps it"},
       [](const StoredNode& n) { return Cell::Of(n.record.external_id); }},
      {{"hostname", Text().OrNull(), "as the cloud reports it"},
       [](const StoredNode& n) { return TextCell(n.record.hostname); }},
      {{"interface_ip", Text().OrNull(), "the address to connect to"},
       [](const StoredNode& n) { return TextCell(n.record.interface_ip); }},
      {{"public_ipv4", Text().OrNull(), "where it has one"},
       [](const StoredNode& n) { return TextCell(n.record.public_ipv4); }},
      {{"private_ipv4", Text().OrNull(), "where it has one"},
       [](const StoredNode& n) { return TextCell(n.record.private_ipv4); }},
      {{"public_ipv6", Text().OrNull(), "where it has one"},
       [](const StoredNode& n) { return TextCell(n.record.public_ipv6); }},
      {{"connection_type", Text().OrNull(), "ssh, winrm ..."},
       [](const StoredNode& n) { return TextCell(n.record.connection_type); }},
      {{"connection_port", Any(), "a number, its digits, or \"redacted\""},
       [](const StoredNode& n) { return listing::ShownPort(n.record); }},
      {{"username", Text().OrNull(), "to log in with"},
       [](const StoredNode& n) { return TextCell(n.record.username); }},
      {{"cloud", Text().OrNull(), "the name of the cloud in the configuration of its driver"},
       [](const StoredNode& n) { return TextCell(n.record.cloud); }},
      {{"region", Text().OrNull(), "of the cloud"},
       [](const StoredNode& n) { return TextCell(n.record.region); }},
      {{"az", Text().OrNull(), "availability zone"},
       [](const StoredNode& n) { return TextCell(n.record.az); }},
      {{"image", Text().OrNull(), "the cloud's image, or the upload's path"},
       [](const StoredNode& n) { return TextCell(n.record.image_id); }},
      {{"resources", MapOf(Number()).OrNull(), "what it takes of its provider's quota"},
       [](const StoredNode& n) {
         return n.record.resources ? json::value(Amounts(*n.record.resources)) : json::value();
       }},
      {{"hold_job", Text().OrNull(), "who holds it: a job, or the operator"},
       [](const StoredNode& n) { return TextCell(n.record.hold_job); }},
      {{"hold_expiration", Whole().OrNull(), "seconds that a hold lasts"},
       [](const StoredNode& n) {
         return n.record.hold_expiration ? json::value(*n.record.hold_expiration) : json::value();
       }},
      {{"comment", Text().OrNull(), "why it is held, as the operator wrote it"},
       [](const StoredNode& n) { return TextCell(n.record.comment); }},
      {{"hourly_price", Number().OrNull(), "of the machine, in the unit of the configuration"},
       [](const StoredNode& n) {
         return n.record.hourly_price ? json::value(*n.record.hourly_price) : json::value();
       }},
      {{"user_data", Any(), "of the client that uses it; null in it for NaN and Infinity"},
       [](const StoredNode& n) { return Cell::Of(n.record.user_data); }},
  });
  return fields;
}

}  // namespace nodepool::web
