#include "listing/node_counts.h"

namespace nodepool::listing {
namespace {

int& GroupOf(NodeCounts& counts, NodeState state) {
  switch (state) {
    case NodeState::kReady:
      return counts.ready;
    case NodeState::kInit:
    case NodeState::kBuilding:
    case NodeState::kTesting:
      return counts.building;
    case NodeState::kInUse:
      return counts.in_use;
    case NodeState::kHold:
      return counts.held;
    case NodeState::kUsed:
    case NodeState::kDeleting:
    case NodeState::kDeleted:
    case NodeState::kFailed:
    case NodeState::kAborted:
      break;
  }
  return counts.ending;
}

}  // namespace

void NodeCounts::Add(std::optional<NodeState> state) {
  if (state) ++GroupOf(*this, *state);
}

void AppendCountColumns(std::vector<Column>& columns) {
  columns.insert(columns.end(), {{.key = "ready", .title = "Ready", .fit = {Importance::kHigh}},
                                 {.key = "building", .title = "Building"},
                                 {.key = "in_use", .title = "In Use", .fit = {Importance::kHigh}},
                                 {.key = "held", .title = "Held"},
                                 {.key = "ending", .title = "Ending", .fit = {Importance::kLow}}});
}

void AppendCounts(std::vector<Cell>& row, const NodeCounts& counts) {
  for (int count : {counts.ready, counts.building, counts.in_use, counts.held, counts.ending})
    row.emplace_back(count);
}

}  // namespace nodepool::listing
