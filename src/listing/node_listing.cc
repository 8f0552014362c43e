#include "listing/node_listing.h"

#include <algorithm>

#include "model/cell.h"

namespace nodepool::listing {
namespace {

namespace json = boost::json;

const std::vector<Column>& AllColumns() {
  static const std::vector<Column> columns = {
      {.key = "id", .title = "ID", .fit = {Importance::kAlways}},
      {.key = "provider", .title = "Provider", .kind = Kind::kProvider, .fit = kName},
      {.key = "label", .title = "Label", .kind = Kind::kLabel, .fit = kName},
      {.key = "server_id", .title = "Server ID", .fit = kLongId},
      {.key = "public_ipv4", .title = "Public IPv4"},
      {.key = "ipv6", .title = "IPv6", .fit = {Importance::kLow}},
      {.key = "state",
       .title = "State",
       .kind = Kind::kState,
       .words = NodeStateWords(),
       .fit = {Importance::kHigh}},
      {.key = "age", .title = "Age", .kind = Kind::kAge, .fit = {Importance::kHigh}, .since = "state_since"},
      {.key = "locked", .title = "Locked"},
      {.key = "pool", .title = "Pool", .fit = {Importance::kMedium, 12}},
      {.key = "hostname", .title = "Hostname", .fit = {Importance::kMedium, 12}},
      {.key = "private_ipv4", .title = "Private IPv4", .fit = {Importance::kLow}},
      {.key = "AZ", .title = "AZ", .fit = {Importance::kLow, 12}},
      {.key = "username", .title = "Username", .fit = {Importance::kLow, 12}},
      {.key = "connection_port", .title = "Port", .fit = {Importance::kLow}},
      {.key = "launcher", .title = "Launcher", .fit = {Importance::kLow, 12}},
      {.key = "allocated_to", .title = "Allocated To"},
      {.key = "hold_job", .title = "Hold Job", .fit = {Importance::kMedium, 12}},
      {.key = "comment", .title = "Comment", .fit = {Importance::kMedium, 24}},
      {.key = "user_data", .title = "User Data", .fit = {Importance::kLow, 12}},
      {.key = "driver_data", .title = "Driver Data", .fit = {Importance::kLow, 12}}};
  return columns;
}

constexpr std::size_t kBriefColumns = 9;

std::vector<Cell> Row(const store::StoredNode& node) {
  const Node& record = node.record;
  std::vector<Cell> cells;
  cells.reserve(AllColumns().size());
  auto add = [&](auto&&... values) { (cells.emplace_back(std::forward<decltype(values)>(values)), ...); };
  add(Cell::OfText(node.id.value), TextOrNull(record.provider.value), JsonNames(record.type),
      Cell::Of(record.external_id), TextCell(record.public_ipv4), TextCell(record.public_ipv6),
      StateCell(record.state), ToSeconds(record.state_time),
      Cell::OfText(node.is_locked() ? "locked" : "unlocked"), TextOrNull(record.pool.value),
      TextCell(record.hostname), TextCell(record.private_ipv4), TextCell(record.az),
      TextCell(record.username), ShownPort(record), TextCell(record.launcher),
      TextOrNull(record.allocated_to.value), TextCell(record.hold_job), TextCell(record.comment),
      Cell::Of(record.user_data), Cell::Of(record.driver_data));
  return cells;
}

}  // namespace

json::value ShownPort(const Node& node) {
  json::value port = node.connection_port.value();
  if (port.is_int64() || port.is_uint64()) return port;
  bool is_digits = port.is_string() && !port.as_string().empty() &&
                   std::ranges::all_of(port.as_string(), [](char c) { return c >= '0' && c <= '9'; });
  return is_digits ? port : json::value("redacted");
}

std::vector<Column> ColumnsOf(NodeColumns columns) {
  std::vector<Column> all = AllColumns();
  if (columns == NodeColumns::kBrief) all.resize(kBriefColumns);
  return all;
}

std::vector<Cell> NodeRow(const store::StoredNode& node, NodeColumns columns) {
  std::vector<Cell> row = Row(node);
  if (columns == NodeColumns::kBrief) row.resize(kBriefColumns);
  return row;
}

Listing ListNodes(const std::vector<const store::StoredNode*>& nodes, NodeColumns columns) {
  Listing listing{ColumnsOf(columns), {}};
  listing.rows.reserve(nodes.size());
  for (const store::StoredNode* node : nodes) listing.rows.push_back(NodeRow(*node, columns));
  return listing;
}

}  // namespace nodepool::listing
