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

// For clean-up: tolerates a lock that is gone with its session and a removed node (nullopt).
inline Task<> UnlockIfHeld(std::optional<LockedNode>& node) {
  if (node && node->is_held()) co_await node->Unlock();
}

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

// The nodes in the tree.
class Nodes {
 public:
  explicit Nodes(Tree& tree) : tree_(tree) {}

  // Creates the record as it is (state init, created_time set), then locks it and
  // applies `change` (state building …) in one transaction. A crash in between
  // leaves an unlocked init node that the launcher's cleaner removes (D-34).
  Task<LockedNode> CreateLocked(Node node, std::function<Change(Node&)> change);
  // Creates a record without locking it (static nodes).
  Task<NodeId> Create(Node node);
  // nullopt: does not exist. Error(kInvalid): cannot be parsed or has no data.
  Task<std::optional<StoredNode>> Read(NodeId id);
  Task<std::vector<NodeId>> List();
  // Locks without waiting and re-reads. nullopt: locked by another, or gone. For a record without
  // data or one that cannot be parsed: Error(kInvalid), and the node is unlocked.
  Task<std::optional<LockedNode>> TryLock(NodeId id, std::string identifier = "");
  // The same for a node that by the cache nobody has locked, with the note that says to hold it: none when
  // there is no readable one. One write and one read.
  struct LockedWithNote {
    LockedNode node;
    std::optional<HoldNote> note;
  };
  Task<std::optional<LockedWithNote>> TryLockFree(NodeId id);
  // The same as TryLock, waiting until `deadline`; nullopt when it passes. kNotFound: gone.
  Task<std::optional<LockedNode>> Lock(NodeId id, SteadyTime deadline, std::string identifier = "");
  // The names in the node's lock directory; empty when there is none. Writes nothing.
  Task<std::vector<std::string>> Contenders(NodeId id);
  // Removes a znode without data, with all below it. False when it has data, or another process
  // uses it; nothing is done then.
  Task<bool> RemoveEmpty(NodeId id);
  // Writes without a lock, e.g. deallocating a fulfilled min-ready node. False: the node is gone,
  // or `change` skipped.
  Task<bool> UpdateUnlocked(NodeId id, std::function<Change(Node&)> change);

  // --- Nodes of an owner that outlives its session --------------------------
  // A persistent contender with the owner's name in it keeps the lock of a node across sessions
  // (drivers.md 8.2).

  // The owner of the node: the identifier of the first contender for its lock, often empty.
  // nullopt: no contender.
  Task<std::optional<std::string>> Owner(NodeId id);
  // Locks the node for `owner`, applies `change` and deletes the request that it was delivered for,
  // in one transaction. False: the node or the request is gone, another owner has the lock, or
  // `change` skipped. Success when all that was done before.
  Task<bool> Claim(NodeId id, std::string owner, std::function<Change(Node&)> change, RequestId request);
  // Applies `change` and releases the lock, in one transaction. False: the node is gone or has
  // another owner, or `change` skipped.
  Task<bool> Release(NodeId id, std::string owner, std::function<Change(Node&)> change);

 private:
  struct Contender {
    std::string path;
    std::string identifier;
  };
  Task<std::optional<Contender>> FirstContender(NodeId id);
  Task<bool> TryClaim(NodeId id, std::string owner, std::function<Change(Node&)> change, RequestId request);
  Task<bool> TryRelease(NodeId id, std::string owner, std::function<Change(Node&)> change,
                        std::string& given_up);
  Task<bool> TryRemoveEmpty(NodeId id);
  Task<std::optional<LockedWithNote>> LockFree(NodeId id);

  Tree& tree_;
};

// The requests in the tree.
class Requests {
 public:
  explicit Requests(Tree& tree) : tree_(tree) {}

  // `precedence` is the text before the dash, e.g. "200". Unset event ids are filled
  // with 32 random hex digits.
  Task<RequestId> Create(std::string precedence, NodeRequest request, bool is_ephemeral);
  // nullopt: does not exist. Error(kInvalid): cannot be parsed.
  Task<std::optional<StoredRequest>> Read(RequestId id);
  Task<std::vector<RequestId>> List();
  Task<> Delete(RequestId id);

  // Locks without waiting, re-reads, applies `change` (e.g. state pending) and writes. nullopt:
  // locked by another, gone, or `change` skipped; nothing is left behind then. `seen`, the cached
  // version, makes the usual case a single transaction.
  Task<std::optional<LockedRequest>> Accept(StoredRequest seen, std::function<Change(NodeRequest&)> change);
  // Locks without waiting and re-reads. nullopt: locked by another, or gone.
  Task<std::optional<LockedRequest>> TryLock(RequestId id);

  // Those of the requests that do not exist, with one read.
  Task<std::vector<RequestId>> Gone(std::vector<RequestId> ids);
  // Removes the lock directories of requests that are gone, but for those whose lock has a contender (D-06);
  // usually with one transaction. Returns those whose directory is gone.
  Task<std::vector<RequestId>> RemoveLocks(std::vector<RequestId> ids);

 private:
  Task<std::optional<LockedRequest>> AcceptLockedBefore(RequestId id,
                                                        std::function<Change(NodeRequest&)> change);
  Task<std::optional<LockedRequest>> UnlessGone(RequestId id, Task<std::optional<LockedRequest>> locking);
  Task<> RemoveLockIfGone(RequestId id, Verdict verdict);
  Task<std::vector<RequestId>> TryGone(std::vector<RequestId> ids);
  Task<std::vector<RequestId>> TryRemoveLocks(std::vector<RequestId> ids);

  Tree& tree_;
};

}  // namespace nodepool::store
