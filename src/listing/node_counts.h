#pragma once

#include <vector>

#include "listing/listing.h"
#include "model/states.h"

namespace nodepool::listing {

// How many nodes a row counts, in groups of states that matter to operators.
struct NodeCounts {
  int ready = 0;
  int building = 0;  // includes init and testing
  int in_use = 0;
  int held = 0;
  int ending = 0;  // used, deleting, failed and so on: deleted or to be deleted

  void Add(std::optional<NodeState> state);
};

// A column for each group, and its cells.
void AppendCountColumns(std::vector<Column>& columns);
void AppendCounts(std::vector<Cell>& row, const NodeCounts& counts);

}  // namespace nodepool::listing
