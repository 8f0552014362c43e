#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/locked_record.h"

namespace nodepool::store {

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

}  // namespace nodepool::store
