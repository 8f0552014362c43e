#include "listing/node_listing.h"

#include <algorithm>

#include "model/json_cells.h"

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

json::value Text(const std::string& text) { return text.empty() ? json::value() : json::value(text); }

json::array Row(const store::StoredNode& node) {
  const Node& record = node.record;
  json::array labels;
  for (const LabelName& label : record.type) labels.emplace_back(label.value);
  return {node.id.value,
          Text(record.provider.value),
          std::move(labels),
          record.external_id,
          JsonText(record.public_ipv4),
          JsonText(record.public_ipv6),
          record.state ? json::value(ToString(*record.state)) : json::value(),
          ToSeconds(record.state_time),
          node.is_locked() ? "locked" : "unlocked",
          Text(record.pool.value),
          JsonText(record.hostname),
          JsonText(record.private_ipv4),
          JsonText(record.az),
          JsonText(record.username),
          ShownPort(record),
          JsonText(record.launcher),
          Text(record.allocated_to.value),
          JsonText(record.hold_job),
          JsonText(record.comment),
          record.user_data,
          record.driver_data};
}

}  // namespace

json::value ShownPort(const Node& node) {
  const json::value& port = node.connection_port;
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

Listing ListNodes(const std::vector<const store::StoredNode*>& nodes, NodeColumns columns) {
  Listing listing{ColumnsOf(columns), {}};
  for (const store::StoredNode* node : nodes) {
    json::array row = Row(*node);
    row.resize(listing.columns.size());
    listing.rows.push_back(std::move(row));
  }
  return listing;
}

}  // namespace nodepool::listing
