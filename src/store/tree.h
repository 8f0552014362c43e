#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "async/backoff.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/ids.h"
#include "zk/client.h"
#include "zk/recipes/lock.h"

namespace nodepool::store {

// A task that ends at once with the default of its type.
template <class T = void>
Task<T> Default() {
  if constexpr (std::is_void_v<T>) {
    co_return;
  } else {
    co_return T();
  }
}

// Acquires a lock, or a locked record, by `acquire`, awaits the task of `use(held)` and then that
// of `release(held)`, whether the use succeeded, failed or was cancelled, also when the task is
// cancelled at the moment when it has acquired. Where `acquire` returns nullopt, neither is called
// and the result is the type's default (false, nullopt).
template <class Held, class Use, class Release>
auto Holding(Task<std::optional<Held>> acquire, Use use, Release release) {
  using Result = typename std::invoke_result_t<Use&, Held&>::value_type;
  auto use_if_held = [use = std::move(use)](std::optional<Held>& held) mutable {
    return held ? use(*held) : Default<Result>();
  };
  auto release_if_held = [release = std::move(release)](std::optional<Held>& held) mutable {
    return held ? release(*held) : Default<>();
  };
  return Bracket(std::move(acquire), std::move(use_if_held), std::move(release_if_held));
}

// Awaits the task that `attempt` returns, and starts it again after a pause while it fails with
// kRetry: the connection was lost, and it is unknown whether the operation was carried out. So the
// attempt must be safe to repeat. Ends at the latest with the session, by the client's
// kLostSession. Whatever `attempt` refers to must outlive the task.
template <class T>
Task<T> Repeat(Loop& loop, Random& random, std::function<Task<T>()> attempt) {
  Backoff backoff({}, random);
  for (;;) {
    Outcome<T> outcome = co_await Attempt(attempt());
    if (!outcome && !FailedWith(outcome, Verdict::kRetry)) outcome.error().Rethrow();
    if constexpr (std::is_void_v<T>) {
      if (outcome) co_return;
    } else {
      if (outcome) co_return std::move(*outcome);
    }
    co_await loop.SleepFor(backoff.Next());
  }
}

// The znodes below the records: the client's operations, repeated after connection losses, and the
// locks. Its only state is the list of the znodes created last, to find the result of a creation
// whose answer was lost.
//
// Errors: kLostSession when the session is over, else the client's.
class Tree {
 public:
  Tree(Loop& loop, zk::Client& client, Random& random)
      : loop_(loop), client_(client), random_(random), locker_(loop, client, random) {}
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  // For operations that are not repeated, or are repeated as a whole.
  zk::Client& client() { return client_; }
  Loop& loop() { return loop_; }
  Random& random() { return random_; }
  WallTime Now() const { return loop_.Now(); }

  // Repeats what `attempt` starts after connection losses.
  template <class T>
  Task<T> Repeat(std::function<Task<T>()> attempt) {
    return store::Repeat<T>(loop_, random_, std::move(attempt));
  }

  Task<zk::Result<zk::NodeData>> Get(std::string path);
  Task<std::vector<std::string>> Children(std::string path);  // none when it is missing
  // Creates the znode, empty, and its missing parents.
  Task<> Ensure(std::string path);
  // Creates the znode, empty, unless it exists; kNotFound when its parent is missing.
  Task<> Make(std::string path);
  // Creates a sequential znode and its missing parents; returns its path. One that an
  // attempt with a lost answer created is found by its data.
  Task<std::string> CreateSequential(std::string path, std::string data, zk::CreateMode mode);
  // Deletes a znode; a missing one counts as deleted. kConflict: it has children.
  Task<> Delete(std::string path);
  // Deletes a znode with all below it.
  Task<> DeleteAll(std::string path);

  // --- Locks ---------------------------------------------------------------
  // Takes the lock without waiting. nullopt: held by another. kNotFound: the parent of
  // the lock directory is missing.
  Task<std::optional<zk::HeldLock>> TryLock(std::string directory, std::string identifier = "");
  // The same for a lock that nobody seems to have, with reads under it (Locker::TryAcquireFree).
  Task<std::optional<zk::Locker::Acquired>> TryLockFree(std::string directory, std::vector<zk::ReadOp> reads);
  // The same, waiting until `deadline`.
  Task<std::optional<zk::HeldLock>> Lock(std::string directory, SteadyTime deadline, std::string identifier);
  // A lock in Nodepool's own directory /nodepool/locks/<name>, which belongs to no record, e.g. for
  // the registration of a static slot (D-85).
  Task<std::optional<zk::HeldLock>> TryLockNamed(std::string name);
  Task<> Unlock(zk::HeldLock lock);
  bool IsHeld(const zk::HeldLock& lock) const { return locker_.IsHeld(lock); }
  // For a lock that is taken in a transaction.
  std::shared_ptr<zk::LockClaim> ClaimLock(std::string directory) const {
    return locker_.Claim(std::move(directory));
  }

  // Takes the lock by `acquire`, awaits the task of `use(lock)` and releases the lock, also when
  // the task is cancelled at the moment when it has the lock. Without the lock `use` is not called
  // and the result is the type's default (false, nullopt).
  //
  //   bool is_built = co_await store.tree.Holding(store.images.TryLock(image), build);
  template <class Use>
  auto Holding(Task<std::optional<zk::HeldLock>> acquire, Use use) {
    return store::Holding(std::move(acquire), std::move(use),
                          [this](zk::HeldLock& lock) { return Unlock(lock); });
  }
  // The same with a lock that is already held.
  template <class T>
  Task<T> Holding(zk::HeldLock lock, Task<T> work) {
    return WithCleanup(std::move(work), [this, lock = std::move(lock)] { return Unlock(lock); });
  }

  // An election among the processes that contend in `directory`; `identifier` is
  // "<hostname>-<pid>".
  zk::Election Election(std::string directory, std::string identifier);

 private:
  Task<std::string> CreateOrFind(std::string path, std::string data, zk::CreateMode mode, bool may_exist);
  Task<std::optional<std::string>> FindNewest(std::string path, std::string data);

  Loop& loop_;
  zk::Client& client_;
  Random& random_;
  zk::Locker locker_;
  std::deque<std::string> created_;  // the last sequential znodes created here
};

// The result of `task`; nullopt as well when it fails with kNotFound.
template <class T>
Task<std::optional<T>> IfExists(Task<std::optional<T>> task) {
  Outcome<std::optional<T>> found = co_await Attempt(std::move(task));
  if (FailedWith(found, Verdict::kNotFound)) co_return std::nullopt;
  if (!found) found.error().Rethrow();
  co_return std::move(*found);
}

}  // namespace nodepool::store
