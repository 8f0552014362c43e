#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "model/node_request.h"
#include "store/record_kinds.h"
#include "store/records.h"
#include "store/tree.h"
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

// nullopt: does not exist. Error(kInvalid): cannot be parsed or has no data.
template <class Stored>
Task<std::optional<Stored>> ReadRecord(Tree& tree, typename RecordKind<Stored>::Id id) {
  zk::Result<zk::NodeData> read = co_await tree.Get(RecordKind<Stored>::Path(id));
  if (!read) co_return std::nullopt;
  co_return Decode<Stored>(id, *read, tree.Now());
}

// The record under `lock`, which is moved into the result; on failure it stays with the caller.
template <class Locked, class Stored>
Task<std::optional<Locked>> ReadLocked(Tree& tree, typename RecordKind<Stored>::Id id,
                                       std::optional<zk::HeldLock>& lock) {
  if (!lock) co_return std::nullopt;
  std::optional<Stored> stored = co_await ReadRecord<Stored>(tree, id);
  if (!stored) {
    throw Error(Verdict::kNotFound,
                fmt::format("{} {} does not exist any more", RecordKind<Stored>::kName, id));
  }
  zk::HeldLock taken = std::move(*lock);
  lock.reset();
  co_return Locked(tree, std::move(*stored), std::move(taken));
}

// Takes the lock of a record by `acquire`, then reads the record. nullopt: no lock. On any error
// the lock is released: kNotFound when the record is gone, kInvalid when it cannot be parsed.
template <class Locked, class Stored>
Task<std::optional<Locked>> LockRecord(Tree& tree, typename RecordKind<Stored>::Id id,
                                       Task<std::optional<zk::HeldLock>> acquire) {
  auto read = [&tree, id](std::optional<zk::HeldLock>& lock) {
    return ReadLocked<Locked, Stored>(tree, id, lock);
  };
  auto unlock = [&tree](std::optional<zk::HeldLock>& lock) {
    return lock ? tree.Unlock(*lock) : Default<>();
  };
  return Bracket(std::move(acquire), std::move(read), std::move(unlock));
}

// A write of a record with the version last read, in one transaction with what belongs to it: a
// lock that is taken, retained or released. Repeated with the newest version when another process
// wrote meanwhile (D-05), and after connection losses: whether a transaction whose answer was lost
// was carried out is found out from the tree.
//
// Configure it, then await Run() once; lives in the frame of its user.
template <class Stored>
class Transaction {
 public:
  using Record = typename RecordKind<Stored>::Record;
  enum class Result {
    kDone,     // `stored` is what was written
    kSkipped,  // `change` returned kSkip
    kGone,     // the record does not exist any more
    kRefused,  // an operation beside the record's failed: failed_path()
  };

  // `stored` holds the record as last read; it follows every re-reading.
  Transaction(Tree& tree, Stored& stored, std::function<Change(Record&)> change)
      : tree_(tree), client_(tree.client()), stored_(stored), change_(std::move(change)) {}

  // One of the three:
  // The lock directory is created, with this process's contender in it; refused when it exists.
  void TakeLock();
  // The contender must exist; throws kLostSession when the lock is lost.
  void KeepLock(zk::HeldLock lock);
  // As KeepLock, and the contender is deleted, after all else.
  void GiveLock(zk::HeldLock lock);

  // Further contenders to delete, before the record is written.
  void AlsoUnlock(std::vector<std::string> contenders) { also_unlock_ = std::move(contenders); }

  // Leaves no contender behind unless it ends with kDone.
  Task<Result> Run();

  // After kDone with TakeLock().
  const zk::HeldLock& taken() const { return *taken_; }
  // After kRefused: the operation at fault.
  const std::string& failed_path() const { return failed_path_; }
  zk::Code failed_code() const { return failed_code_; }

 private:
  enum class LockUse { kNone, kTake, kKeep, kGive };

  Task<Result> AttemptOnce();
  Task<std::optional<Result>> FindOut();
  Task<bool> LockShowsSuccess();
  Task<> WithdrawUnlessDone();
  Task<> Withdraw();
  Task<bool> Reread();
  std::vector<zk::Op> Operations();
  void RequireHeld() const;
  std::string LockDirectory() const { return RecordKind<Stored>::LockPath(stored_.id); }

  Tree& tree_;
  zk::Client& client_;
  Stored& stored_;
  std::function<Change(Record&)> change_;
  LockUse lock_use_ = LockUse::kNone;
  zk::HeldLock lock_;                     // kKeep, kGive
  std::string prefix_;                    // kTake: of the contender's name
  std::shared_ptr<zk::LockClaim> claim_;  // kTake
  std::vector<std::string> also_unlock_;
  std::optional<zk::HeldLock> taken_;
  std::string failed_path_;
  zk::Code failed_code_ = zk::Code::kOk;
  Record next_;                // what is being written
  std::string data_;           // the same, as text
  std::size_t record_op_ = 0;  // its place in the transaction
  bool is_done_ = false;
  bool is_uncertain_ = false;  // an answer was lost
  bool is_stale_ = false;      // another process wrote after `stored` was read
};

// Applies `change` to the newest version of the record and writes it, under `lock` or without one.
// False: `change` skipped. kNotFound: the record is gone.
template <class Stored>
Task<bool> UpdateRecord(Tree& tree, Stored& stored, std::optional<zk::HeldLock> lock,
                        std::function<Change(typename RecordKind<Stored>::Record&)> change);

// How launchers make their min-ready requests (launcher.md 14): in transactions that exclude each other, so
// that each is based on records that show what the others have requested. A Python launcher knows nothing of
// this.
class MinReadyRequests {
 public:
  explicit MinReadyRequests(Tree& tree) : tree_(tree) {}

  // The number of such transactions so far. Read it before the records that say what is missing.
  Task<std::int32_t> Version();
  // Makes ephemeral requests. nullopt: launchers have made some since `seen_version`, so read the records and
  // decide again; this includes requests of this call whose answer was lost.
  Task<std::optional<std::vector<RequestId>>> Create(std::vector<NodeRequest> requests,
                                                     std::int32_t seen_version);

 private:
  Tree& tree_;
};

}  // namespace nodepool::store
