#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "async/backoff.h"
#include "async/event.h"
#include "async/task_group.h"
#include "base/error.h"
#include "base/random.h"

namespace nodepool::drivers::openstack {

// One list of the cloud that everybody who waits for a change looks at: it is read
// again and again while somebody waits, and not at all otherwise. However many wait,
// there is one call, as long after the last one as that took, but one to five seconds
// (driver-openstack.md 8). A list that cannot be read is tried again after a pause,
// and those who wait go on waiting (D-93).
template <class T>
class ListCache {
 public:
  struct Listing {
    std::shared_ptr<const T> items;
    SteadyTime begun;  // nothing that happened before this is missing in it
  };
  using Read = std::function<Task<T>()>;

  // The tasks that read belong to `tasks`; everything outlives the cache.
  ListCache(TaskGroup& tasks, Random& random, std::string name, Read read)
      : tasks_(tasks), random_(random), name_(std::move(name)), read_(std::move(read)) {}

  // The first list whose reading began after `since`.
  Task<Listing> After(SteadyTime since) {
    while (latest_.items == nullptr || latest_.begun <= since) {
      ++waiting_;
      struct Leave {
        int& waiting;
        ~Leave() { --waiting; }
      } leave{waiting_};
      if (!is_reading_) {
        is_reading_ = true;
        tasks_.Spawn("list " + name_, ReadWhileWanted());
      }
      co_await read_once_.Wait();
      // The owner has ended the reading: nobody would wake us again.
      if (tasks_.stopping()) throw Error(Verdict::kCancelled, "the provider was stopped");
    }
    co_return latest_;
  }

  // A list not older than `age`, or a new one.
  Task<Listing> NotOlderThan(Duration age) {
    SteadyTime since = tasks_.loop().SteadyNow() - age;
    return After(since);
  }

 private:
  static constexpr Duration kPause = std::chrono::seconds(1);
  static constexpr Duration kLongestPause = std::chrono::seconds(5);
  static constexpr Backoff::Settings kFailurePauses{std::chrono::seconds(1), std::chrono::seconds(60)};

  Task<> ReadWhileWanted() {
    struct End {
      ListCache& cache;
      ~End() {
        cache.is_reading_ = false;
        cache.read_once_.NotifyAll();
      }
    } end{*this};
    Loop& loop = tasks_.loop();
    Backoff failure_pauses(kFailurePauses, random_);
    while (waiting_ > 0) {
      SteadyTime rested = last_end_ + std::clamp<Duration>(last_took_, kPause, kLongestPause);
      if (latest_.items != nullptr && loop.SteadyNow() < rested) co_await loop.SleepUntil(rested);
      SteadyTime begun = loop.SteadyNow();
      std::exception_ptr error;
      std::shared_ptr<const T> items;
      try {
        T list = co_await read_();
        items = std::make_shared<const T>(std::move(list));
      } catch (...) {
        error = std::current_exception();
      }
      if (error && VerdictOf(error) == Verdict::kCancelled) std::rethrow_exception(error);
      last_end_ = loop.SteadyNow();
      last_took_ = last_end_ - begun;
      if (error) {
        logger_.Warning("The list of {} could not be read; it is tried again: {}", name_, MessageOf(error));
        Duration pause = failure_pauses.Next();
        co_await loop.SleepFor(pause);
        continue;
      }
      failure_pauses.Reset();
      latest_ = {std::move(items), begun};
      read_once_.NotifyAll();
      // Let those who wait look, and wait again, before it is decided who still does.
      co_await loop.SleepFor(Duration::zero());
    }
  }

  TaskGroup& tasks_;
  Random& random_;
  std::string name_;
  Read read_;
  log::Logger logger_{"nodepool.OpenStackAdapter"};
  Listing latest_{};
  SteadyTime last_end_{};
  Duration last_took_{};
  int waiting_ = 0;
  bool is_reading_ = false;
  WaitList read_once_;
};

}  // namespace nodepool::drivers::openstack
