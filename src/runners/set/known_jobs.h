#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runners/scale_sets.h"

namespace nodepool::runners {

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

}  // namespace nodepool::runners
