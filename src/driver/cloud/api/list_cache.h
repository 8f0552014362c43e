#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "async/attempt.h"
#include "async/backoff.h"
#include "async/event.h"
#include "async/task_group.h"
#include "base/random.h"
#include "base/request_id.h"
#include "base/scope_exit.h"

namespace nodepool::driver::cloud::api {

// A list of the cloud, shared by all tasks that wait for a change of it: it is read repeatedly while at least
// one of them waits, and not at all otherwise. However many wait, there is one call at a time; the pause
// between calls is as long as the last call took, but at least `pause` and at most five seconds. If the list
// cannot be read, it is tried again after a pause, and the tasks continue to wait.
template <class T>
class ListCache {
 public:
  struct Listing {
    std::shared_ptr<const T> items;
    SteadyTime begun;  // the list contains everything that happened before this
  };
  using Read = std::function<Task<T>()>;

  // The tasks that read belong to `tasks`; everything outlives the cache. `name` is for log lines:
  // "servers of provider x".
  ListCache(TaskGroup& tasks, Random& random, log::Logger logger, std::string name, Read read,
            Duration pause = std::chrono::seconds(1))
      : tasks_(tasks),
        random_(random),
        logger_(std::move(logger)),
        name_(std::move(name)),
        read_(std::move(read)),
        pause_(pause) {}

  // The first list whose reading began after `since`.
  Task<Listing> After(SteadyTime since) {
    while (latest_.items == nullptr || latest_.begun <= since) {
      ++waiting_;
      ScopeExit leave([this] { --waiting_; });
      if (!is_reading_) {
        is_reading_ = true;
        tasks_.Spawn("list " + name_, ReadWhileWanted());
      }
      co_await read_once_.Wait();
      // The owner has ended the reading: nothing would wake us again.
      if (tasks_.stopping()) throw Error(Verdict::kCancelled, "the provider was stopped");
    }
    co_return latest_;
  }

  // The last list if it is not older than `age`, else a new one.
  Task<Listing> NotOlderThan(Duration age) {
    SteadyTime since = tasks_.loop().SteadyNow() - age;
    return After(since);
  }

  // The first list whose reading begins from now on; also one that began at this very instant of the clock.
  Task<Listing> Fresh() { return NotOlderThan(Duration(1)); }

  // The first list whose reading begins from now on and for which `is_met` is true. `is_met` is called once
  // for each list, in order; what it throws ends the wait.
  Task<Listing> Until(std::function<bool(const T&)> is_met) {
    SteadyTime since = tasks_.loop().SteadyNow();
    while (true) {
      Listing listing = co_await After(since);
      if (is_met(*listing.items)) co_return listing;
      since = listing.begun;
    }
  }

 private:
  static constexpr Duration kMaxPause = std::chrono::seconds(5);
  static constexpr Backoff::Settings kFailurePauses{std::chrono::seconds(1), std::chrono::seconds(60)};

  Task<> ReadWhileWanted() {
    ScopeExit end([this] {
      is_reading_ = false;
      read_once_.NotifyAll();
    });
    Loop& loop = tasks_.loop();
    Backoff failure_pauses(kFailurePauses, random_);
    while (waiting_ > 0) {
      SteadyTime rested = last_end_ + std::clamp<Duration>(last_took_, pause_, kMaxPause);
      if (latest_.items != nullptr && loop.SteadyNow() < rested) co_await loop.SleepUntil(rested);
      SteadyTime begun = loop.SteadyNow();
      Outcome<T> list = co_await Attempt(read_());
      last_end_ = loop.SteadyNow();
      last_took_ = last_end_ - begun;
      if (!list) {
        // Once for each cause.
        bool is_new = ReplaceMessage(last_failure_, list.error().message());
        logger_.Write(is_new ? log::Level::kWarning : log::Level::kDebug,
                      fmt::format("The list of {} could not be read; it is tried again: {}", name_,
                                  list.error().message()));
        Duration pause = failure_pauses.Next();
        co_await loop.SleepFor(pause);
        continue;
      }
      failure_pauses.Reset();
      last_failure_.clear();
      latest_ = {std::make_shared<const T>(std::move(*list)), begun};
      read_once_.NotifyAll();
      // Let the waiting tasks read the list, and perhaps wait again, before checking whether any still waits.
      co_await loop.GiveWay();
    }
  }

  TaskGroup& tasks_;
  Random& random_;
  log::Logger logger_;
  std::string name_;
  Read read_;
  Duration pause_;
  Listing latest_{};
  SteadyTime last_end_{};
  Duration last_took_{};
  std::string last_failure_;  // empty: the last reading succeeded
  int waiting_ = 0;
  bool is_reading_ = false;
  WaitList read_once_;
};

}  // namespace nodepool::driver::cloud::api
