#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "model/node.h"
#include "model/raw_json.h"

namespace nodepool {

using RunId = StrongId<struct RunIdTag>;  // 8 hex digits, one runner on one node

// How far a run is; each step is written before the next one begins (runners.md 11).
enum class RunState {
  kWanted,      // a node is wanted; it may have a lease
  kNode,        // it has a node
  kRegistered,  // the service knows the runner; its configuration may have been handed over
  kStarted,     // the runner's process has been started on the node
  kOnline,      // it waits for a job
  kJob,         // it has one
  kEnding,      // registration, lease and record go
};

std::string_view ToString(RunState state);
std::optional<RunState> ParseRunState(std::string_view text);
std::vector<std::string_view> RunStateWords();

// A job as its service names it. All texts are the service's, and may be hostile; each has a bounded length.
struct RunnerJob {
  std::int64_t request = 0;  // the service's number of this try of the job
  std::string repository;    // "owner/name"
  std::string workflow;      // its file or name, where it is known
  std::string job;
  std::string run_url;                    // empty, or begins with https://
  std::optional<WallTime> queued_time;    // when it entered the service's queue
  std::optional<WallTime> assigned_time;  // when the set of runners got it

  bool operator==(const RunnerJob&) const = default;
};

// "build of octo/app (https://...)", for people: control characters are visible, and it has one line.
std::string DescribeJob(const RunnerJob& job);

// One runner for one job, from the request for a node to the node's return. The id is the znode's name.
struct RunnerRun {
  std::optional<RunState> state;  // absent only in a default object
  std::string service;            // name of the service, and of its set
  std::string set;
  std::string runner_name;
  std::int64_t runner_id = 0;  // in the service; 0: not known
  LeaseId lease;
  NodeId node;
  std::string handle;  // of the job that the runner was made for, where the service has such; else empty
  RunnerJob job;       // that it has, or was made for; without a repository: not known
  std::optional<WallTime> created_time;
  std::optional<WallTime> node_time;
  std::optional<WallTime> online_time;
  std::optional<WallTime> job_time;   // the job's first step
  std::optional<std::string> reason;  // why it ends, for people
  Foreign foreign;
};

// The error says what is wrong with which key; also when there is no state, service or set.
Expected<RunnerRun> ParseRunnerRun(std::string_view json);
std::string ToJson(const RunnerRun& run);

// A job whose node or runner was lost while it ran, for people.
struct LostJob {
  RunnerJob job;
  NodeId node;
  std::string reason;
  std::optional<WallTime> time;

  bool operator==(const LostJob&) const = default;
};

// What is known of a set of runners: what the next daemon that is elected for it needs, and what is shown.
struct RunnerSetRecord {
  std::int64_t scale_set = 0;     // its id in the service; 0: not known
  bool is_made = false;           // by us, so that it goes with the configuration
  std::string url;                // whose set it is, as configured
  std::string session;            // id of our session; empty: none
  std::string owner;              // of the session, as the service shows it
  std::string hostname;           // where the daemon runs that is elected
  std::string state;              // for people: "listening", "starting", "fault", "draining"
  std::string fault;              // what is wrong, and why; empty: nothing
  std::string remedy;             // what to do about it
  std::optional<WallTime> since;  // of the state
  std::int64_t waiting = 0;       // jobs without a runner
  std::string why;                // they wait, for people; empty: none waits
  std::vector<RunnerJob> jobs;    // the first of those that wait, where messages name them
  std::vector<LostJob> lost;      // the latest, of a day at most
  std::int64_t phantoms = 0;
  std::int64_t max_runners = 0;
  std::vector<RunnerJob> deferred;       // announced jobs that are acquired later
  std::vector<std::string> warnings;     // what will not work, or not as configured; for people
  std::string version;                   // of the runner, as a node reported it last; empty: not known
  std::string newest_version;            // of the runners that the service offers
  std::optional<WallTime> newest_since;  // when that was first seen
  Foreign foreign;
};

Expected<RunnerSetRecord> ParseRunnerSetRecord(std::string_view json);
std::string ToJson(const RunnerSetRecord& set);

// The key in a node's user data, beside those of the lease, of the job that it has (node_request.h): {"name",
// "set", "repository", "workflow", "job", "run_url"}. Replaces what was there; a node without a lease's data
// is left as it is.
void MarkJob(Node& node, const RunnerRun& run);

// Whether the text is 8 lower-case hex digits.
bool IsRunId(std::string_view text);

}  // namespace nodepool
