#pragma once

#include <vector>

#include "listing/listing.h"
#include "model/states.h"

namespace nodepool::listing {

// How many nodes a row counts, in the groups of states that a person tells apart.
struct NodeCounts {
  int ready = 0;
  int building = 0;  // init and testing among them
  int in_use = 0;
  int held = 0;
  int ending = 0;  // used, deleting, failed and so on: what is deleted or is to be

  void Add(std::optional<NodeState> state);
};

// A column for each group, and its cells.
void AppendCountColumns(std::vector<Column>& columns);
void AppendCounts(std::vector<Cell>& row, const NodeCounts& counts);

}  // namespace nodepool::listing
