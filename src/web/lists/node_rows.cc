#include "web/lists/node_rows.h"

#include <algorithm>

namespace nodepool::web {

NodeRows::Row NodeRows::RowOf(const store::StoredNode& node, std::span<Row>& old_rows) {
  while (!old_rows.empty() && old_rows.front().id < node.id) old_rows = old_rows.subspan(1);
  bool is_current = !old_rows.empty() && old_rows.front().id == node.id;
  if (is_current && old_rows.front().mzxid == node.revision.mzxid &&
      old_rows.front().is_locked == node.is_locked()) {
    return std::move(old_rows.front());
  }
  scratch_.Clear();
  make_(scratch_, node);
  return {node.id, node.revision.mzxid, node.is_locked(), scratch_};
}

bool NodeRows::Update(const store::NodeCache& nodes, const Limits& limits) {
  std::vector<Row> rows;
  rows.reserve(std::min(limits.rows, nodes.all().size()));
  std::size_t bytes = 0;
  std::span<Row> old_rows = rows_;
  for (const auto& [id, node] : nodes.all()) {
    if (rows.size() == limits.rows || bytes > limits.bytes) break;
    rows.push_back(RowOf(node, old_rows));
    bytes += rows.back().text.size();
  }
  rows_ = std::move(rows);
  return rows_.size() == nodes.all().size();
}

void NodeRows::ForEach(const std::function<void(const listing::AgedText&)>& see) const {
  for (const Row& row : rows_) see(row.text);
}

}  // namespace nodepool::web
