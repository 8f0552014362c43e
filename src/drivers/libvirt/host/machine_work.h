#pragma once

#include <map>
#include <memory>
#include <string>

#include "async/attempt.h"
#include "async/event.h"
#include "async/task_group.h"
#include "base/scope_exit.h"

namespace nodepool::drivers::libvirt {

// Calls that make something of a machine. A call goes on when the task that awaits it is cancelled, since the
// host carries it out anyway; a deletion first waits for its end.
class MachineWork {
 public:
  // The tasks belong to `tasks`, which outlives this object.
  explicit MachineWork(TaskGroup& tasks) : tasks_(tasks) {}

  // Awaits `call` as work on the machine.
  template <class T>
  Task<T> Run(std::string uuid, Task<T> call) {
    if (tasks_.stopping()) throw Error(Verdict::kCancelled, "the provider was stopped");
    auto end = std::make_shared<OneShot<Outcome<T>>>();
    ++under_way_[uuid];
    tasks_.Spawn("call for machine " + uuid, Carry(uuid, std::move(call), end));
    Outcome<T> outcome = co_await end->Take();
    if (!outcome) outcome.error().Rethrow();
    if constexpr (!std::is_void_v<T>) co_return std::move(*outcome);
  }

  // Ends when nothing is under way for the machine.
  Task<> Settled(std::string uuid) {
    while (under_way_.contains(uuid)) co_await ended_.Wait();
  }

 private:
  template <class T>
  Task<> Carry(std::string uuid, Task<T> call, std::shared_ptr<OneShot<Outcome<T>>> end) {
    ScopeExit leave([&] {
      end->Set(std::unexpected(Failure(Error(Verdict::kCancelled, "the provider was stopped"))));
      if (--under_way_[uuid] == 0) under_way_.erase(uuid);
      ended_.NotifyAll();
    });
    Outcome<T> outcome = co_await Attempt(std::move(call));
    end->Set(std::move(outcome));
  }

  TaskGroup& tasks_;
  std::map<std::string, int> under_way_;  // by UUID
  WaitList ended_;
};

}  // namespace nodepool::drivers::libvirt
