#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "listing/listing.h"
#include "store/cache/cached_records.h"
#include "store/cache/caches.h"
#include "store/records.h"

namespace nodepool::listing {

enum class NodeColumns {
  kBrief,   // the 9 columns of `list`
  kDetail,  // all 21 of `list --detail`
};

std::vector<Column> ColumnsOf(NodeColumns columns);

// The cells of a node, which refer to it (no copies).
std::vector<Cell> NodeRow(const store::StoredNode& node, NodeColumns columns);

// Nodes as in operations.md 5.4, in the given order; keys as in operations.md 6.3. The cells refer to the
// nodes.
Listing ListNodes(const std::vector<const store::StoredNode*>& nodes, NodeColumns columns);

// A node's port for display: "redacted" unless it is a number or a string of digits, because connection data
// of other kinds may contain credentials.
boost::json::value ShownPort(const Node& node);

std::vector<Column> RequestColumns();

// The cells of a request.
std::vector<Cell> RequestRow(const store::StoredRequest& request);

// Requests as in operations.md 5.4, in the given order; keys as in operations.md 6.3.
Listing ListRequests(const std::map<RequestId, store::StoredRequest>& requests);

// Why requests wait, where it is known.
using Reasons = std::map<RequestId, std::string>;

// When the request began to wait.
WallTime WaitsSince(const NodeRequest& request);

// Requests that have no nodes yet, the longest waiting first.
std::vector<const store::StoredRequest*> WaitingRequests(const store::RequestCache& requests);

std::vector<Column> WaitingColumns();

Listing ListWaiting(const store::RequestCache& requests, const Reasons& why);

// A row for all requests with the same reason: how many they are, how long the first of them
// has waited, and its id; the first `limit` of them.
Listing ListWaitingByReason(const store::RequestCache& requests, const Reasons& why, std::size_t limit);

// How the status shows them.
enum class WaitingRows { kEach, kByReason };

std::vector<Column> JobColumns();

// The id as people write it: without its leading zeros.
std::int64_t NumberOf(const JobId& id);

// The rules about jobs, by id (operations.md 13.5).
Listing ListJobs(const std::map<JobId, store::StoredJobRule>& rules);

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
