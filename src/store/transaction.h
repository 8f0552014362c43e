#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/decode.h"
#include "store/tree.h"

namespace nodepool::store {

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
  zk::HeldLock lock_;   // kKeep, kGive
  std::string prefix_;  // kTake: of the contender's name
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

}  // namespace nodepool::store
