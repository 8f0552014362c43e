#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runners/context.h"
#include "runners/scale_sets.h"

namespace nodepool::runners {

// What is wrong with a set, and why; and what to do about it. Sentences without a full stop; empty: nothing.
struct SetFault {
  std::string text;
  std::string remedy;
};

// Why a set starts no runners for a while, and what of it is wrong (runners.md 8, 9). All texts are for
// people, without secrets.
class SetHealth {
 public:
  // A node could not be had for a run.
  void NoNode(std::string reason, WallTime now);
  // A node was there, and its runner did not start. After three in a row starts are held back.
  void DidNotStart(std::string reason, WallTime now);
  // A runner was started.
  void Started();
  // The service refuses the runner's version: one try each ten minutes.
  void Deprecated(std::string version, WallTime now);
  // The service cannot be used; an empty one: it can.
  void ServiceFault(SetFault fault) { service_fault_ = std::move(fault); }

  // Whether runs may begin; else until when they are held back.
  std::optional<WallTime> HeldBackUntil(WallTime now) const;
  // Whether requests failed a short while ago.
  bool LacksNodes(WallTime now) const;
  // The most urgent fault.
  SetFault Fault(WallTime now) const;

 private:
  SetFault service_fault_;
  SetFault start_fault_;
  SetFault node_fault_;
  std::optional<WallTime> node_failed_;
  std::optional<WallTime> held_until_;
  int failures_in_a_row_ = 0;
};

// The jobs that messages have named and that no runner has yet (runners.md 7). Keyed by the service's number
// of a job, so that a message that comes again changes nothing.
class KnownJobs {
 public:
  // A job is ours and waits for a runner. False: it was known before, or had a runner already.
  bool Add(RunnerJob job, WallTime now);
  // It has a runner, or is over; should a message say later that it waits, that one is an old one.
  void End(std::int64_t request, WallTime now);
  // It is not ours.
  void Remove(std::int64_t request);
  // The service's figures: when they twice say that there is no job at all, there is none. Jobs that have
  // been known for long are left to the figures.
  void Compare(const sched::JobStatistics& statistics, WallTime now);

  std::int64_t count() const { return static_cast<std::int64_t>(jobs_.size()); }
  std::int64_t CountOf(const std::string& repository) const;

  // The first of those that wait, the oldest first.
  std::vector<RunnerJob> First(std::size_t limit) const;

  // The job may be acquired later: its repository has as many as it may have.
  void Defer(RunnerJob job);
  // Removes and returns those for which `may` is true.
  template <class F>
  std::vector<RunnerJob> TakeDeferred(F may) {
    std::vector<RunnerJob> taken;
    std::vector<RunnerJob> left;
    for (RunnerJob& job : deferred_) (may(job) ? taken : left).push_back(std::move(job));
    deferred_ = std::move(left);
    return taken;
  }
  bool is_full() const { return deferred_.size() >= kMaxDeferred; }
  const std::vector<RunnerJob>& deferred() const { return deferred_; }

 private:
  struct Known {
    RunnerJob job;
    WallTime since;
  };
  static constexpr std::size_t kMaxDeferred = 200;  // all of them are in the set's record

  std::map<std::int64_t, Known> jobs_;
  std::vector<RunnerJob> deferred_;
  std::map<std::int64_t, WallTime> ended_;
  bool was_nothing_ = false;
};

// How old the runner on a set's nodes is: GitHub refuses one 30 days after the release of a newer one, and
// has no date for that (runners.md 8). What is known is in the set's record.
class RunnerVersions {
 public:
  // Everything outlives it. `changed` is called when there is something new.
  RunnerVersions(SetContext& set, RunnerSetRecord& record, std::function<void()> changed)
      : set_(set), record_(record), changed_(std::move(changed)) {}

  // Asks the service once a day what is the newest, until it is cancelled.
  Task<> Follow();
  // A node has the version; empty: that is not known.
  void Seen(const std::string& version);
  // What will not work any more, and when, for people; empty: nothing. Measures it, too.
  std::string Warning() const;

 private:
  SetContext& set_;
  RunnerSetRecord& record_;
  std::function<void()> changed_;
};

// The warning; empty: nothing is wrong, or not known.
std::string VersionWarning(const std::string& version, const std::string& newest, WallTime newer_since,
                           WallTime now);
// Whether "2.9.1" is older than "2.10.0"; false where one is not known.
bool IsOlderVersion(const std::string& version, const std::string& other);

// Listens to the service for one set: makes the set where it is missing, has its session, and passes its
// messages on (runners.md 2.5 to 2.7). A fault never ends it.
class SetSession {
 public:
  struct Handler {
    // What the service is told: so many runners there may be.
    std::function<std::int64_t()> capacity;
    // The figures of the new session.
    std::function<void(const sched::JobStatistics&)> opened;
    // A message, or an empty one when there was none for a while; it is acknowledged once this has ended.
    std::function<Task<>(MessageSession& session, MessageBatch batch)> handle;
    // The set's record has changed, or is to be written.
    std::function<Task<>()> write;
  };

  // Everything outlives it. `record` is the set's, in the memory of its term.
  SetSession(SetContext& set, SetHealth& health, RunnerSetRecord& record, Handler handler);

  // Listens until it is cancelled; then it closes the session.
  Task<> Run();

 private:
  Task<> Serve();
  Task<> EnsureSet();
  Task<> AdoptSet(const ScaleSet& found, std::int64_t group);
  Task<> ClosePredecessor();
  Task<> Open();
  Task<> Poll();
  Task<> PollOnce(std::int64_t& last);
  Task<> Close();
  Task<> NoteState(std::string state, std::string fault);
  Duration PauseAfter(const Failure& failure);

  SetContext& set_;
  SetHealth& health_;
  RunnerSetRecord& record_;
  Handler handler_;
  std::shared_ptr<const SetSettings> adopted_;  // that the service's set was made by
  MessageSession session_;
  std::optional<SteadyTime> conflict_since_;
  std::string last_fault_;
};

}  // namespace nodepool::runners
