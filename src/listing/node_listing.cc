#include "listing/node_listing.h"

#include <algorithm>

#include "model/cell.h"

namespace nodepool::listing {
namespace {

namespace json = boost::json;

const std::vector<Column>& AllColumns() {
  static const std::vector<Column> columns = {{"id", "ID"},
                                              {"provider", "Provider", Kind::kProvider},
                                              {"label", "Label", Kind::kLabel},
                                              {"server_id", "Server ID"},
                                              {"public_ipv4", "Public IPv4"},
                                              {"ipv6", "IPv6"},
                                              {"state", "State", Kind::kState, NodeStateWords()},
                                              {"age", "Age", Kind::kAge},
                                              {"locked", "Locked"},
                                              {"pool", "Pool"},
                                              {"hostname", "Hostname"},
                                              {"private_ipv4", "Private IPv4"},
                                              {"AZ", "AZ"},
                                              {"username", "Username"},
                                              {"connection_port", "Port"},
                                              {"launcher", "Launcher"},
                                              {"allocated_to", "Allocated To"},
                                              {"hold_job", "Hold Job"},
                                              {"comment", "Comment"},
                                              {"user_data", "User Data"},
                                              {"driver_data", "Driver Data"}};
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
