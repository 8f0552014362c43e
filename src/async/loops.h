#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "async/stop_steps.h"

namespace nodepool {

// The loops that a daemon consists of, as a list: they start in its order and stop in the opposite one.
class Loops {
 public:
  // `loop` has Start() and Task<> Stop(), and SessionLost() if it works under locks; it outlives this list.
  // `name` is for the log, as in "ending NAME".
  template <class Loop>
  void Add(std::string name, Loop& loop) {
    Entry entry{std::move(name), [&loop] { loop.Start(); }, [&loop] { return loop.Stop(); }, [] {}};
    if constexpr (requires { loop.SessionLost(); }) entry.drop = [&loop] { loop.SessionLost(); };
    entries_.push_back(std::move(entry));
  }

  void Start() {
    for (const Entry& entry : entries_) entry.start();
  }
  // All drop the work that they do under locks, which are gone with the session.
  void SessionLost() {
    for (const Entry& entry : entries_) entry.drop();
  }
  Task<> Stop(StopSteps& steps) {
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
      co_await steps.Do("ending " + entry->name, entry->stop());
    }
  }

 private:
  struct Entry {
    std::string name;
    std::function<void()> start;
    std::function<Task<>()> stop;
    std::function<void()> drop;
  };

  std::vector<Entry> entries_;
};

}  // namespace nodepool
