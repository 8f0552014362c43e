#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "async/async_cache.h"
#include "async/backoff.h"
#include "async/deadline.h"
#include "async/event.h"
#include "async/loop.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/scope_exit.h"
#include "driver/cloud/api/api_error.h"

namespace nodepool::driver::cloud::api {

// When a list is worth reading again for a machine that starts, learned from how long the last ones took:
// seldom while it cannot have started yet, often when it is about to, with the readings that were saved until
// then. So the calls are no more than with a reading after each pause. Pure: times are the caller's.
class UsualStart {
 public:
  // `pause`: between readings while nothing is known, more than 0.
  explicit UsualStart(Duration pause) : pause_(pause) {}

  // A machine has started, so long after its creation was accepted.
  void Started(Duration took);
  // The list is read, so long after the reading before.
  void Reading(Duration after);
  // The pause until the next reading for a machine whose creation was accepted `age` ago.
  Duration PauseAt(Duration age) const;

 private:
  struct Window {
    Duration from;
    Duration to;
  };
  // When a machine is expected to have started; none: fewer than three are known.
  std::optional<Window> Expected() const;

  Duration pause_;
  std::deque<Duration> took_;  // the last ones
  double saved_ = 0;           // readings
};

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
        pause_(pause),
        usual_(pause) {}

  // The first list whose reading began after `since`. `accepted`: the caller waits for a machine to start,
  // whose creation was accepted then.
  Task<Listing> After(SteadyTime since, std::optional<SteadyTime> accepted = {}) {
    while (latest_.items == nullptr || latest_.begun <= since) {
      auto place = waiting_.insert(accepted);
      ScopeExit leave([this, place] { waiting_.erase(place); });
      if (SteadyTime wanted = TurnFor(accepted); wanted < turn_) {
        turn_ = wanted;
        sooner_.NotifyAll();
      }
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
  Task<Listing> Until(std::function<bool(const T&)> is_met) { return Await(std::move(is_met), std::nullopt); }

  // The same for a machine whose creation was accepted now, and that has started when `is_met` is true.
  Task<Listing> UntilStarted(std::function<bool(const T&)> is_met) {
    return Await(std::move(is_met), tasks_.loop().SteadyNow());
  }

  // The machine that a caller of After() waited for has started.
  void NoteStart(SteadyTime accepted) { usual_.Started(tasks_.loop().SteadyNow() - accepted); }

 private:
  static constexpr Duration kMaxPause = std::chrono::seconds(5);
  static constexpr Backoff::Settings kFailurePauses{std::chrono::seconds(1), std::chrono::seconds(60)};

  Task<Listing> Await(std::function<bool(const T&)> is_met, std::optional<SteadyTime> accepted) {
    SteadyTime since = tasks_.loop().SteadyNow();
    while (true) {
      Listing listing = co_await After(since, accepted);
      if (is_met(*listing.items)) {
        if (accepted) NoteStart(*accepted);
        co_return listing;
      }
      since = listing.begun;
    }
  }

  // When the list is to be read next for one who waits.
  SteadyTime TurnFor(std::optional<SteadyTime> accepted) const {
    Duration least = accepted ? usual_.PauseAt(last_end_ - *accepted) : pause_;
    return last_end_ + std::max(least, std::min(last_took_, kMaxPause));
  }

  Task<> AwaitTurn() {
    Loop& loop = tasks_.loop();
    turn_ = SteadyTime::max();
    for (const std::optional<SteadyTime>& accepted : waiting_) turn_ = std::min(turn_, TurnFor(accepted));
    while (loop.SteadyNow() < turn_)
      co_await EndsBy(loop, turn_, "the next reading of " + name_, sooner_.Wait());
  }

  Task<> ReadWhileWanted() {
    ScopeExit end([this] {
      is_reading_ = false;
      read_once_.NotifyAll();
    });
    Loop& loop = tasks_.loop();
    Backoff failure_pauses(kFailurePauses, random_);
    // While nobody waits no readings are saved.
    SteadyTime last_begun = loop.SteadyNow() - pause_;
    while (!waiting_.empty()) {
      if (latest_.items != nullptr) co_await AwaitTurn();
      SteadyTime begun = loop.SteadyNow();
      usual_.Reading(begun - std::exchange(last_begun, begun));
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
  UsualStart usual_;
  Listing latest_{};
  SteadyTime last_end_{};
  Duration last_took_{};
  std::string last_failure_;  // empty: the last reading succeeded
  // When the creation of each one's machine was accepted; none: it waits for something else.
  std::multiset<std::optional<SteadyTime>> waiting_;
  SteadyTime turn_{};  // of the next reading
  bool is_reading_ = false;
  WaitList read_once_;
  WaitList sooner_;  // the turn has come nearer
};

// What a cloud is asked for by a key and changes rarely: the newest image of a family, or the one that
// matches filters. An answer is used for five minutes and then asked for again. While the cloud does not
// answer, the last one is used until it is an hour old. Tasks that want the same one wait for one call.
template <class Key, class T>
class KeptAnswers {
 public:
  using Read = std::function<Task<T>(Key)>;
  // Gets the key of an answer that is used although it could not be read again, and why.
  using UsedOld = std::function<void(const Key&, const Failure&)>;

  // The loop outlives it.
  KeptAnswers(
      Loop& loop, Read read, UsedOld used_old = [](const Key&, const Failure&) {})
      : loop_(loop),
        used_old_(std::move(used_old)),
        fresh_([this, read = std::move(read)](Key key) { return Ask(read, std::move(key)); }) {}

  // Errors: those of the reading.
  Task<T> Get(Key key) {
    const Answer* known = fresh_.Find(key);
    if (known != nullptr && loop_.SteadyNow() - known->asked >= kFresh) fresh_.Erase(key);
    Outcome<Answer> answer = co_await Attempt(fresh_.Get(key));
    if (answer) {
      last_.insert_or_assign(key, *answer);
      co_return std::move(answer->value);
    }
    auto last = last_.find(key);
    bool is_usable = last != last_.end() && loop_.SteadyNow() - last->second.asked < kUsable;
    if (!is_usable || !IsPassing(answer.error())) answer.error().Rethrow();
    used_old_(key, answer.error());
    co_return last->second.value;
  }

  // All are asked for again; called when the cloud refused what an answer said.
  void Doubt() { fresh_.Clear(); }

 private:
  static constexpr Duration kFresh = std::chrono::minutes(5);
  static constexpr Duration kUsable = std::chrono::hours(1);

  struct Answer {
    T value;
    SteadyTime asked;
  };

  Task<Answer> Ask(const Read& read, Key key) {
    SteadyTime asked = loop_.SteadyNow();
    T value = co_await read(std::move(key));
    co_return Answer{std::move(value), asked};
  }

  Loop& loop_;
  UsedOld used_old_;
  AsyncCache<Key, Answer> fresh_;
  std::map<Key, Answer> last_;  // good ones
};

}  // namespace nodepool::driver::cloud::api
