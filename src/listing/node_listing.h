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

// The cells of a node, which refer to it (no copies).
std::vector<Cell> NodeRow(const store::StoredNode& node, NodeColumns columns);

// Nodes as in operations.md 5.4, in the given order; keys as in operations.md 6.3. The cells refer to the
// nodes.
Listing ListNodes(const std::vector<const store::StoredNode*>& nodes, NodeColumns columns);

// A node's port for display: "redacted" unless it is a number or a string of digits, because connection data
// of other kinds may contain credentials.
boost::json::value ShownPort(const Node& node);

}  // namespace nodepool::listing
