#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "model/runner.h"

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

// What is known of a run with a node: its record, its lease, what the node and the service say (runners.md 8,
// 9).
struct RunView {
  RunState state = RunState::kNode;
  WallTime node_time{};                  // since when it has the node
  WallTime job_time{};                   // and its job; meaningless before
  std::optional<WallTime> awaits_since;  // since when it is online while a job waits
  bool has_node = true;                  // its lease holds the node
  // By the session with the node:
  bool is_ready = false;        // the node waits for the configuration: nothing was started there
  bool is_handed_over = false;  // the configuration was given to this session
  bool is_started = false;      // the process exists, or has existed
  bool is_online = false;
  bool has_worker = false;                    // a process runs a job
  std::optional<int> status;                  // the process has ended so; -1: not known how
  bool has_failed = false;                    // the node refuses to start it
  std::optional<WallTime> unreachable_since;  // no session with the node
  // By the service:
  bool is_told_job = false;            // a message says that it has a job
  std::optional<WallTime> told_end;    // a message says that the job is over
  std::optional<WallTime> gone_since;  // the service does not know the runner, by a look-up
  // By us:
  bool is_surplus = false;  // nobody needs it
  bool is_warned = false;   // of a job that takes too long
};

struct RunTimes {
  Duration start = std::chrono::seconds(120);
  Duration pickup = std::chrono::seconds(300);
  Duration job = std::chrono::hours(6);
  bool enforces_job = false;
};

enum class RunStep {
  kWait,
  kRegister,     // the node waits: make the registration and hand its configuration over
  kNoteStarted,  // write what was seen
  kNoteOnline,
  kNoteJob,
  kWarnOfJob,  // it takes too long
  kEnd,        // the process is over, or the node is gone
  kTakeBack,   // delete the registration, unless it is busy; then end the process and the run
};

struct RunDecision {
  RunStep step = RunStep::kWait;
  std::string_view reason;           // of an end; a literal
  bool is_phantom = false;           // of kTakeBack: the job that it was started for never came
  WallTime until = WallTime::max();  // of kWait: decide again then at the latest
};

RunDecision DecideRun(const RunView& view, const RunTimes& times, WallTime now);

}  // namespace nodepool::sched
