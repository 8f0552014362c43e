#pragma once

#include <functional>
#include <vector>

#include "store/locked_node.h"

namespace nodepool::store {

// A request whose lock this process holds.
class LockedRequest : public LockedRecord<StoredRequest> {
 public:
  using LockedRecord::LockedRecord;

  // Applies `change`, writes and unlocks in one transaction; when the request is gone, only the
  // lock is released and false returned.
  Task<bool> UpdateAndUnlock(std::function<Change(NodeRequest&)> change);

  // Completes a successful request in one transaction: unlocks every node of `nodes`, writes the
  // request, unlocks the request, in this order (coordination.md 11.3). When the request is gone,
  // nothing is done and false returned.
  Task<bool> Fulfil(std::vector<LockedNode*> nodes, std::function<Change(NodeRequest&)> change);
};

}  // namespace nodepool::store
