#pragma once

#include <string>
#include <vector>

#include "store/records.h"
#include "zk/client.h"

namespace nodepool::store {

// The znodes below a node's znode, in the order in which one transaction deletes them: the
// contenders for its lock from the last to the first, then the directories. So no other contender
// becomes the first of a node that is being deleted.
Task<std::vector<std::string>> ZnodesBelow(zk::Client& client, NodeId id);

// The operations of the transaction: the record becomes `deleted`, which its watchers see, provided
// that it still is of this version; then `below` is deleted, then the node. Refused when anything
// else has been created below it.
std::vector<zk::Op> DeletionOf(const StoredNode& node, const std::vector<std::string>& below, WallTime now);

}  // namespace nodepool::store
