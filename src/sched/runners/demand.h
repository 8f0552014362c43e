#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace nodepool::sched {

// What a service says about a set's jobs; of the moment of its answer (runners.md 2.7).
struct JobStatistics {
  std::int64_t available = 0;
  std::int64_t acquired = 0;
  std::int64_t assigned = 0;  // waiting and running
  std::int64_t running = 0;

  bool is_nothing() const { return available == 0 && acquired == 0 && assigned == 0; }
};

// All that is known of a set when its runners are counted.
struct RunnerCounts {
  std::optional<JobStatistics> statistics;  // of our session; nullopt: none yet
  std::int64_t known_jobs = 0;              // that messages name, and no message has started or ended
  std::int64_t wanted = 0;                  // runs that wait for a node
  std::int64_t starting = 0;                // runs with a node whose runner is not online yet
  std::int64_t online = 0;                  // runners without a job
  std::int64_t busy = 0;
  std::int64_t phantoms = 0;  // jobs that the service counts, and that never came
};

struct RunnerLimits {
  std::int64_t max_runners = 0;                 // of the set
  std::optional<std::int64_t> left_of_service;  // for further runners of all its sets
  std::int64_t idle = 0;
  bool is_draining = false;  // the set is not configured any more
  bool may_start = true;     // nothing holds back new runs
  bool lacks_nodes = false;  // requests failed, or wait for long
};

// What follows (runners.md 7).
struct RunnerDemand {
  std::int64_t waiting = 0;   // jobs without a runner
  std::int64_t start = 0;     // runs to begin
  std::int64_t surplus = 0;   // free runners that nobody needs
  std::int64_t capacity = 0;  // what the service is told
};

RunnerDemand DecideDemand(const RunnerCounts& counts, const RunnerLimits& limits);

// Why the jobs without a runner wait, for people; empty: there are none. `deferred` are announced jobs whose
// repository has as many as it may have.
std::string WhyJobsWait(const RunnerCounts& counts, const RunnerLimits& limits, const RunnerDemand& demand,
                        std::int64_t deferred);

// How many phantoms are left when the service's figures have changed.
std::int64_t PhantomsLeft(std::int64_t phantoms, const JobStatistics& statistics);

}  // namespace nodepool::sched
