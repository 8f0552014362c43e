#pragma once

#include <string>
#include <vector>

#include "store/records.h"
#include "zk/client.h"

namespace nodepool::store {

// What stands below a node's znode, in the order in which one transaction deletes it: the
// contenders for its lock from the end of their line to its head, then the directories. So
// nobody else comes to the head of the line of a node that is going.
Task<std::vector<std::string>> ZnodesBelow(zk::Client& client, NodeId id);

// The parts of the transaction: the record becomes `deleted`, which those who watch it are told,
// provided that it still is of this version; `below` goes, then the node. Refused when anything
// else has come below it.
std::vector<zk::Op> DeletionOf(const StoredNode& node, const std::vector<std::string>& below, WallTime now);

}  // namespace nodepool::store
