#pragma once

#include <fmt/format.h>

#include "store/decode.h"
#include "store/tree.h"

namespace nodepool::store {

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

}  // namespace nodepool::store
