#include "web/lists/node_rows.h"

#include <algorithm>
#include <utility>

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

Task<bool> NodeRows::Update(const store::NodeCache& nodes, Limits limits, Pace& pace) {
  std::vector<Row> former = std::exchange(rows_, {});
  std::span<Row> old_rows = former;
  std::vector<Row> rows;
  rows.reserve(std::min(limits.rows, nodes.all().size()));
  std::size_t bytes = 0;
  auto next = nodes.all().begin();
  while (next != nodes.all().end() && rows.size() < limits.rows && bytes <= limits.bytes) {
    rows.push_back(RowOf(next->second, old_rows));
    std::size_t size = rows.back().text.size();
    bytes += size;
    ++next;
    if (pace.is_due(size)) {
      co_await pace.Pause();
      next = nodes.all().upper_bound(rows.back().id);
    }
  }
  rows_ = std::move(rows);
  co_return next == nodes.all().end();
}

Task<> NodeRows::ForEach(See see, Pace& pace) const {
  for (const Row& row : rows_) {
    see(row.text);
    if (pace.is_due(row.text.size())) co_await pace.Pause();
  }
}

}  // namespace nodepool::web
