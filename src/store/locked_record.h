#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/records.h"
#include "store/tree.h"

namespace nodepool::store {

// A record whose lock this process holds, as last read or written. Every write carries the expected
// version (D-05): when another process wrote meanwhile, the record is read again and the change
// applied to the new version, or skipped.
//
// Errors of all writes: kNotFound when the record is gone, kLostSession when the
// session of the lock is over (nothing was written then), else the client's.
// Writes are repeated through connection losses; one that had already been carried
// out is recognised.
template <class Stored>
class LockedRecord {
 public:
  using Record = decltype(Stored::record);

  LockedRecord() = default;  // holds nothing; only to be assigned to
  LockedRecord(Tree& tree, Stored stored, zk::HeldLock lock)
      : tree_(&tree), stored_(std::move(stored)), lock_(std::move(lock)) {}

  const auto& id() const { return stored_.id; }
  const Record& record() const { return stored_.record; }
  const Revision& revision() const { return stored_.revision; }
  const zk::HeldLock& lock() const { return lock_; }
  // False once it was released, or the session has ended.
  bool is_held() const { return tree_ != nullptr && !is_unlocked_ && tree_->IsHeld(lock_); }

  // Applies `change` to the newest version and writes it. False when it skipped.
  Task<bool> Update(std::function<Change(Record&)> change);

  // Releases the lock, unless that was done before.
  Task<> Unlock();

 protected:
  Tree& tree() { return *tree_; }
  Stored& stored() { return stored_; }
  void SetUnlocked() { is_unlocked_ = true; }

 private:
  Tree* tree_ = nullptr;
  Stored stored_;
  zk::HeldLock lock_;
  bool is_unlocked_ = false;  // by Unlock() or a write
};

// Locks a record by `acquire`, e.g. store.nodes.TryLock(id), awaits the task of `use(locked)` and
// unlocks the record, also when the task is cancelled at the moment when it has the lock. A record
// that `use` unlocked or removed itself is left so. Where `acquire` returns nullopt, `use` is not
// called and the result is the type's default (false, nullopt).
template <class Locked, class Use>
auto Holding(Task<std::optional<Locked>> acquire, Use use) {
  return Holding(std::move(acquire), std::move(use), [](Locked& locked) { return locked.Unlock(); });
}

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
