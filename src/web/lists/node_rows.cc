#include "web/lists/node_rows.h"

#include <algorithm>

namespace nodepool::web {

NodeRows::Row NodeRows::RowOf(const store::StoredNode& node, std::span<Row>& kept) {
  while (!kept.empty() && kept.front().id < node.id) kept = kept.subspan(1);
  bool is_kept = !kept.empty() && kept.front().id == node.id;
  if (is_kept && kept.front().mzxid == node.revision.mzxid && kept.front().is_locked == node.is_locked()) {
    return std::move(kept.front());
  }
  scratch_.Clear();
  make_(scratch_, node);
  return {node.id, node.revision.mzxid, node.is_locked(), scratch_};
}

void NodeRows::ForEach(const store::NodeCache& nodes,
                       const std::function<void(const listing::AgedText&)>& see, std::size_t limit) {
  std::vector<Row> rows;
  rows.reserve(std::min(limit, nodes.all().size()));
  std::span<Row> kept = rows_;
  for (const auto& [id, node] : nodes.all()) {
    if (rows.size() == limit) break;
    rows.push_back(RowOf(node, kept));
    see(rows.back().text);
  }
  rows_ = std::move(rows);
}

}  // namespace nodepool::web
