#pragma once

#include <string>
#include <vector>

#include "store/locked_record.h"

namespace nodepool::store {

// A node whose lock this process holds.
class LockedNode : public LockedRecord<StoredNode> {
 public:
  using LockedRecord::LockedRecord;

  // Removes the record with its lock directory: first state `deleted`, then all znodes, in one
  // transaction. Contenders that wait are removed as well (coordination.md 11.9). A missing node
  // counts as removed.
  Task<> Remove();

 private:
  friend class LockedRequest;
  Task<bool> TryRemove(std::vector<std::string>& below);
};

}  // namespace nodepool::store
