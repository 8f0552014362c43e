#pragma once

#include <functional>
#include <string>

#include "async/loop.h"
#include "base/log/logging.h"
#include "base/random.h"
#include "zk/recipes/lock.h"

namespace nodepool::zk {

// Lets one of several processes do something, by kazoo's election recipe: whoever
// holds the exclusive lock on a directory leads (coordination.md 6.12). With the
// session the leadership ends too, so at most one process believes to lead, except
// for the time that a cut-off one needs to notice.
class Election {
 public:
  // `directory` is made with its parents; `identifier` tells people who contends,
  // "<hostname>-<pid>" by custom.
  Election(Loop& loop, Client& client, Random& random, std::string directory, std::string identifier)
      : loop_(loop),
        client_(client),
        random_(random),
        locker_(loop, client, random),
        directory_(std::move(directory)),
        identifier_(std::move(identifier)) {}

  // Waits until this process leads, then runs `lead`. When the session is lost
  // meanwhile, that task is cancelled, its end awaited, and everything begins again.
  // When it ends by itself or throws, the leadership is resigned and so does Run.
  // Cancelling Run cancels the task and resigns. Faults of ZooKeeper are retried
  // for ever; Error(kLostSession) only when the client is closed.
  Task<> Run(std::function<Task<>()> lead);

  // Runs again and again: when `lead` throws, that is logged, and after a pause in which another
  // may take over this process stands again. `what` is what the leader does.
  Task<> RunForEver(std::function<Task<>()> lead, std::string what, log::Logger logger);

  bool is_leader() const { return is_leader_; }

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
  bool is_leader_ = false;
};

}  // namespace nodepool::zk
