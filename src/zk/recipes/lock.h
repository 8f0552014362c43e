#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "base/ids.h"
#include "base/log/logging.h"
#include "zk/client.h"

namespace nodepool::zk {

// The locks of one process: for each directory in which it contends or has the lock, the session.
using LockClaims = std::multimap<std::string, Session, std::less<>>;

// An entry there, until its end.
class LockClaim {
 public:
  LockClaim(std::shared_ptr<LockClaims> claims, std::string directory, Session session)
      : claims_(std::move(claims)), entry_(claims_->emplace(std::move(directory), session)) {}
  LockClaim(const LockClaim&) = delete;
  LockClaim& operator=(const LockClaim&) = delete;
  ~LockClaim() { End(); }

  void End() {
    if (claims_) std::exchange(claims_, nullptr)->erase(entry_);
  }

 private:
  std::shared_ptr<LockClaims> claims_;
  LockClaims::iterator entry_;
};

// A held lock: the contender `path` in its directory, created in `session`. It is
// plain data; releasing is explicit (Locker::Release) because it is a write, or
// part of a Multi (DeleteOp{path}).
struct HeldLock {
  std::string path;  // "<directory>/<32 hex>__lock__<10 digits>"
  Session session;
  std::shared_ptr<LockClaim> claim;

  // To be called when the release is about to be sent, as others may see it before the answer comes.
  void BeginRelease() const {
    if (claim) claim->End();
  }
};

// Kazoo's exclusive lock, the same on the wire (coordination.md 6): ephemeral sequential contenders
// "<32 hex>__lock__<number>" in a persistent directory; the smallest number owns the lock. Excludes
// kazoo's and Curator-style contenders. The parts of a process that share a locker do not contend with each
// other unless they wait: a lock that one of them has or is about to have is held by another for the rest.
class Locker {
 public:
  Locker(Loop& loop, Client& client, Random& random) : loop_(loop), client_(client), random_(random) {}

  // Takes the lock if no other contender has it or waits for it. Reads before it writes: when
  // another contender is ahead, nothing is written. nullopt: held by another. Error(kNotFound): the
  // directory's parent is missing; it is never created (D-07), only the directory itself.
  Task<std::optional<HeldLock>> TryAcquire(std::string directory, std::string identifier = "");

  // The same for a lock that, as far as the caller knows, nobody has: writes first. `reads` are answered in
  // the same message as the proof that the lock is held, and show the tree under the lock.
  struct Acquired {
    HeldLock lock;
    std::vector<ReadResult> reads;
  };
  Task<std::optional<Acquired>> TryAcquireFree(std::string directory, std::vector<ReadOp> reads);

  // Waits in line, watching only the predecessor. nullopt at `deadline`. When it ends without the
  // lock, in whatever way, its own contender is removed.
  Task<std::optional<HeldLock>> Acquire(std::string directory, SteadyTime deadline,
                                        std::string identifier = "");

  // Deletes the contender; one that is already deleted counts as released. Nothing is sent when the
  // session is another one. Retries after connection losses.
  Task<> Release(HeldLock lock);

  // For a contender that is created otherwise, e.g. in a transaction; to be kept with the lock.
  std::shared_ptr<LockClaim> Claim(std::string directory) const {
    return std::make_shared<LockClaim>(claims_, std::move(directory), client_.session());
  }
  // Whether this process contends there in its present session, or has the lock.
  bool IsClaimed(std::string_view directory) const;

  // Whether the session in which the lock was taken is still the client's.
  bool IsHeld(const HeldLock& lock) const {
    return client_.session() == lock.session && client_.state() != SessionState::kLost &&
           client_.state() != SessionState::kClosed;
  }

 private:
  Loop& loop_;
  Client& client_;
  Random& random_;
  std::shared_ptr<LockClaims> claims_ = std::make_shared<LockClaims>();
};

// Whether a child of a lock directory contends for the exclusive lock: its name
// ends in "__lock__" and ten digits (coordination.md 6.7).
bool IsContender(std::string_view name);

// The contenders among `children`, the owner first.
std::vector<std::string> SortedContenders(std::vector<std::string> children);

// A fresh contender name without the server's number: "<32 hex>__lock__".
std::string ContenderPrefix(Random& random);

// Lets one of several processes do something, by kazoo's election recipe: the holder of the
// exclusive lock on a directory leads (coordination.md 6.12). The leadership ends with the session,
// so at most one process believes that it leads, except for the time that a disconnected one needs
// to notice.
class Election {
 public:
  // `directory` is created with its parents; `identifier` shows operators who contends,
  // "<hostname>-<pid>" by convention.
  Election(Loop& loop, Client& client, Random& random, std::string directory, std::string identifier)
      : loop_(loop),
        client_(client),
        random_(random),
        locker_(loop, client, random),
        directory_(std::move(directory)),
        identifier_(std::move(identifier)) {}

  // Waits until this process leads, then runs `lead`. When the session is lost meanwhile, that task
  // is cancelled, its end awaited, and the election starts again. When `lead` returns or throws,
  // the leadership is resigned and Run returns or throws the same. Cancelling Run cancels the task
  // and resigns. Faults of ZooKeeper are retried for ever; Error(kLostSession) only when the client
  // is closed.
  Task<> Run(std::function<Task<>()> lead);

  // Runs again and again: when `lead` throws, that is logged, and after a pause, in which another
  // process may take over, this process contends again. `what` names what the leader does, for the
  // log.
  Task<> RunForEver(std::function<Task<>()> lead, std::string what, log::Logger logger);

 private:
  Task<HeldLock> Win();
  Task<std::optional<HeldLock>> Stand();
  Task<bool> Reign(HeldLock lock, Task<> lead);

  Loop& loop_;
  Client& client_;
  Random& random_;
  Locker locker_;
  std::string directory_;
  std::string identifier_;
};

}  // namespace nodepool::zk
