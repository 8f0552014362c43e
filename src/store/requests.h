#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/locked_record.h"

namespace nodepool::store {

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
