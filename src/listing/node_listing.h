#pragma once

#include <boost/json/value.hpp>

#include "listing/listing.h"
#include "store/records.h"

namespace nodepool::listing {

enum class NodeColumns {
  kBrief,   // the 9 columns of `list`
  kDetail,  // all 21 of `list --detail`
};

std::vector<Column> ColumnsOf(NodeColumns columns);

// The cells of a node, which look at it.
std::vector<Cell> NodeRow(const store::StoredNode& node, NodeColumns columns);

// Nodes as operations.md 5.4 shows them, in the order given; keys as in operations.md 6.3. The cells look at
// the nodes.
Listing ListNodes(const std::vector<const store::StoredNode*>& nodes, NodeColumns columns);

// A node's port for people: "redacted" unless it is a number or a string of digits,
// because connection data of other kinds may hold credentials.
boost::json::value ShownPort(const Node& node);

}  // namespace nodepool::listing
