#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "listing/listing.h"
#include "store/cache/runner_cache.h"

namespace nodepool::listing {

// A job of a set of runners, or a runner that has none yet. Texts about the job are a service's.
struct RunnerJobRow {
  std::string id;          // of the run, or "waiting-NUMBER" and "lost-NODE"; unique among the rows of a set
  std::string_view state;  // "waiting", "lost", or a run's state
  std::string set;         // "service/set"
  RunnerJob job;           // without a repository: not known
  std::string runner;
  NodeId node;
  std::optional<WallTime> since;  // of the state
  std::string why;                // it waits, or is lost; empty: it does not wait
  std::optional<WallTime> wanted_time, node_time, online_time, job_time;  // of the run
};

// Why a run that waits for a node has none, as launchers say; empty: not known.
using WhyNoNode = std::function<std::string(const RunnerRun& run)>;

// The jobs that wait, as far as their sets name them, then the runs, then the jobs that were lost; by set.
std::vector<RunnerJobRow> RunnerJobs(const store::RunnerCache& runners, const WhyNoNode& why_no_node);
std::vector<std::string_view> RunnerJobStates();

std::vector<Column> RunnerJobColumns();
Listing ListRunnerJobs(const std::vector<RunnerJobRow>& jobs);

// A set with how many runs it has.
struct RunnerSetRow {
  store::RunnerSetKey key;
  const RunnerSetRecord* record = nullptr;
  std::int64_t starting = 0;  // a node is wanted, or the runner starts on it
  std::int64_t idle = 0;      // online without a job
  std::int64_t busy = 0;
};

// All sets, by name. The rows refer to the cache.
std::vector<RunnerSetRow> RunnerSets(const store::RunnerCache& runners);

std::vector<Column> RunnerSetColumns();
Listing ListRunnerSets(const std::vector<RunnerSetRow>& sets);

}  // namespace nodepool::listing
