#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/backoff.h"
#include "async/deadline.h"
#include "async/event.h"
#include "async/loop.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/error.h"
#include "base/log/logging.h"

namespace nodepool {

// Runs an evaluation after each change, or at a time that the last evaluation chose: the loop of a
// worker that decides and starts tasks.
//
//   WakeLoop scheduling_{loop, "requests or nodes", {.settle = 10ms}, [this] { return RunOnce(); }, logger};
//   tasks_.Spawn("schedule", scheduling_.Run());
//   cache.OnChange([this] { scheduling_.Wake(); });
class WakeLoop {
 public:
  struct Pace {
    Duration settle{0};  // the minimum time between two evaluations: one for a burst of changes
    Duration longest = Duration::max();  // the maximum time between two evaluations
  };
  // Runs on the loop, never inside Wake(). Returns when it is due again at the latest;
  // SteadyTime::max(): only after a change. What it throws is logged.
  using Evaluate = std::function<SteadyTime()>;

  // `subject`, a literal, says in a task dump whose change is awaited.
  WakeLoop(Loop& loop, const char* subject, Pace pace, Evaluate evaluate, log::Logger logger);

  // Something changed: evaluates soon.
  void Wake() { wake_.Set(); }

  // The loop. Begins with an evaluation; ends when it is cancelled.
  Task<> Run();

  // How often it has evaluated.
  std::uint64_t count() const { return count_; }

 private:
  SteadyTime EvaluateGuarded();

  Loop& loop_;
  const char* subject_;
  Pace pace_;
  Evaluate evaluate_;
  log::Logger logger_;
  Event wake_;
  std::uint64_t count_ = 0;
};

// Works on what changed, by key, and on each key once at a time. A change meanwhile is looked at afterwards.
// Work that fails is done again after a growing pause with jitter, and each cause is logged once. A pause
// concerns one kind of work: if the key needs another one by then, that is begun at once.
//
//   Reconciler<NodeId> deletions_{loop, random, logger_,
//                                 {&FailureText, &IdsOf, {seconds(1), minutes(5)}},
//                                 [this](const NodeId& id) { return WorkFor(id); }};
//   cache.OnChange([this](const NodeId& id, …) { deletions_.Notice(id); });
template <class Key>
class Reconciler {
 public:
  struct Work {
    std::string_view what;  // a literal: the task's name, and the kind of work
    Task<> task;
    Duration after{0};  // begins when the key has needed it for so long
  };
  // What the key needs now; nullopt: nothing. Called by Notice(), so it must be quick.
  using WorkFor = std::function<std::optional<Work>(const Key&)>;
  struct Settings {
    std::function<std::string(const Key&)> failure;  // logged before the cause
    std::function<log::Ids(const Key&)> ids_of;
    Backoff::Settings pauses = {};
  };

  // `loop` and `random` outlive it. Call Stop() before its destruction.
  Reconciler(Loop& loop, Random& random, log::Logger logger, Settings settings, WorkFor work_for)
      : loop_(loop),
        random_(random),
        logger_(std::move(logger)),
        settings_(std::move(settings)),
        work_for_(std::move(work_for)),
        alarm_(loop, [this] { NoticeDue(); }),
        tasks_(loop, logger_) {}

  // Something about the key has changed, or may have.
  void Notice(const Key& key) {
    auto known = keys_.find(key);
    if (known != keys_.end() && known->second.is_under_way) {
      known->second.is_changed = true;
      return;
    }
    std::optional<Work> work = work_for_(key);
    if (!work) return;  // a pause is remembered until its end
    State& state = StateFor(key, work->what);
    SteadyTime begins = std::max(state.since + work->after, state.not_before);
    if (loop_.SteadyNow() < begins) {
      WakeAt(key, state, begins);
    } else {
      Begin(key, state, std::move(*work));
    }
  }

  // Does this work now, whatever the key needs by itself, unless other work on it is under way.
  void Do(const Key& key, Work work) {
    if (IsUnderWay(key)) return;
    State& state = StateFor(key, work.what);
    Begin(key, state, std::move(work));
  }

  // From the key's work: it is not done again before this time has passed, but then it is.
  void Pause(const Key& key, Duration pause) {
    if (auto known = keys_.find(key); known != keys_.end())
      known->second.not_before = loop_.SteadyNow() + pause;
  }

  // From the key's work: for how long the key has needed it.
  Duration NeededFor(const Key& key) const {
    auto known = keys_.find(key);
    return known == keys_.end() ? Duration(0) : loop_.SteadyNow() - known->second.since;
  }

  bool IsUnderWay(const Key& key) const {
    auto known = keys_.find(key);
    return known != keys_.end() && known->second.is_under_way;
  }

  // Ends when no work is under way.
  Task<> Join() { return tasks_.Join(); }
  // Abandons the work under way, since the session is lost, and its repetitions.
  void CancelAll() { tasks_.CancelAll(); }
  Task<> Stop() {
    alarm_.Cancel();
    return tasks_.Stop();
  }

 private:
  struct Failures {
    Backoff pauses;
    std::string last;
  };
  // Of a key that is worked on, or waits for a time.
  struct State {
    std::string_view what;
    SteadyTime since;
    SteadyTime not_before{};
    bool is_under_way = false;
    bool is_changed = false;             // meanwhile
    std::optional<Failures> failures{};  // until the work succeeds
    std::optional<SteadyTime> wakes_at{};
  };

  State& StateFor(const Key& key, std::string_view what) {
    auto known = keys_.find(key);
    if (known != keys_.end() && known->second.what != what) {
      WakeNoMore(key, known->second);
      keys_.erase(known);
    }
    return keys_.try_emplace(key, State{what, loop_.SteadyNow()}).first->second;
  }

  void Begin(const Key& key, State& state, Work work) {
    WakeNoMore(key, state);
    state.is_under_way = true;
    tasks_.Spawn(std::string(work.what), settings_.ids_of(key), Run(key, std::move(work.task)));
  }

  Task<> Run(Key key, Task<> work) {
    struct Forgotten {
      Reconciler& owner;
      const Key& key;
      bool has_ended = false;
      ~Forgotten() {
        if (!has_ended) owner.keys_.erase(key);
      }
    } cancelled{*this, key};
    Outcome<> done = co_await Attempt(std::move(work));
    cancelled.has_ended = true;
    Ended(key, done);
  }

  void Ended(const Key& key, const Outcome<>& done) {
    State& state = keys_.at(key);
    state.is_under_way = false;
    bool is_changed = std::exchange(state.is_changed, false);
    if (done) {
      state.failures.reset();
    } else if (!FailedWith(done, Verdict::kLostSession)) {
      NoteFailure(key, state, done.error().message());
    }
    if (loop_.SteadyNow() < state.not_before) {
      WakeAt(key, state, state.not_before);
    } else {
      keys_.erase(key);
    }
    if (is_changed) Notice(key);
  }

  void NoteFailure(const Key& key, State& state, const std::string& why) {
    if (!state.failures) state.failures.emplace(Failures{Backoff(settings_.pauses, random_), {}});
    log::Level level = ReplaceMessage(state.failures->last, why) ? log::Level::kError : log::Level::kDebug;
    logger_.About(settings_.ids_of(key)).Write(level, fmt::format("{}: {}", settings_.failure(key), why));
    state.not_before = loop_.SteadyNow() + state.failures->pauses.Next();
  }

  void WakeAt(const Key& key, State& state, SteadyTime when) {
    WakeNoMore(key, state);
    state.wakes_at = when;
    wakes_.emplace(when, key);
    alarm_.SetFor(wakes_.begin()->first);
  }

  void WakeNoMore(const Key& key, State& state) {
    if (auto when = std::exchange(state.wakes_at, std::nullopt)) wakes_.erase({*when, key});
  }

  void NoticeDue() {
    std::vector<Key> due;
    for (const auto& [when, key] : wakes_) {
      if (loop_.SteadyNow() < when) break;
      due.push_back(key);
    }
    for (const Key& key : due) {
      auto known = keys_.find(key);
      // Work on a key that came before it may have ended at once, and with it what this one waited for.
      if (known == keys_.end() || !known->second.wakes_at || loop_.SteadyNow() < *known->second.wakes_at)
        continue;
      WakeNoMore(key, known->second);
      Notice(key);
      known = keys_.find(key);
      bool is_idle = known != keys_.end() && !known->second.is_under_way && !known->second.wakes_at;
      if (is_idle) keys_.erase(known);
    }
    if (!wakes_.empty()) alarm_.SetFor(wakes_.begin()->first);
  }

  Loop& loop_;
  Random& random_;
  log::Logger logger_;
  Settings settings_;
  WorkFor work_for_;
  std::map<Key, State> keys_;
  std::set<std::pair<SteadyTime, Key>> wakes_;
  Alarm alarm_;
  TaskGroup tasks_;
};

}  // namespace nodepool
