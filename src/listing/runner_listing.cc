#include "listing/runner_listing.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace nodepool::listing {
namespace {

constexpr std::string_view kWaitingJob = "waiting", kLostJob = "lost";

Cell TimeOrNull(const std::optional<WallTime>& time) { return time ? Cell(UnixTime(*time)) : Cell(); }

Cell TextOrNothing(const std::string& text) { return text.empty() ? Cell() : Cell(std::string(text)); }

std::optional<WallTime> SinceOf(const RunnerRun& run) {
  switch (*run.state) {
    case RunState::kWanted:
      return run.created_time;
    case RunState::kOnline:
      return run.online_time;
    case RunState::kJob:
      return run.job_time;
    default:
      return run.node_time;
  }
}

std::string WhyOf(const RunnerRun& run, const WhyNoNode& why_no_node) {
  if (run.state == RunState::kEnding) return run.reason.value_or("");
  if (run.state != RunState::kWanted) return "";
  std::string why = why_no_node(run);
  return why.empty() ? "a node is requested" : why;
}

RunnerJobRow RowOf(const RunId& id, const RunnerRun& run, const WhyNoNode& why_no_node) {
  return {.id = id.value,
          .state = ToString(*run.state),
          .set = run.service + "/" + run.set,
          .job = run.job,
          .runner = run.runner_name,
          .node = run.node,
          .since = SinceOf(run),
          .why = WhyOf(run, why_no_node),
          .wanted_time = run.created_time,
          .node_time = run.node_time,
          .online_time = run.online_time,
          .job_time = run.job_time};
}

RunnerJobRow WaitingRow(const store::RunnerSetKey& key, const RunnerJob& job, std::string why) {
  return {.id = fmt::format("waiting-{}", job.request),
          .state = kWaitingJob,
          .set = key.str(),
          .job = job,
          .since = job.queued_time ? job.queued_time : job.assigned_time,
          .why = std::move(why)};
}

RunnerJobRow LostRow(const store::RunnerSetKey& key, const LostJob& lost) {
  return {.id = "lost-" + lost.node.value,
          .state = kLostJob,
          .set = key.str(),
          .job = lost.job,
          .node = lost.node,
          .since = lost.time,
          .why = lost.reason};
}

}  // namespace

std::vector<std::string_view> RunnerJobStates() {
  std::vector<std::string_view> states = RunStateWords();
  states.push_back(kWaitingJob);
  states.push_back(kLostJob);
  return states;
}

std::vector<RunnerJobRow> RunnerJobs(const store::RunnerCache& runners, const WhyNoNode& why_no_node) {
  std::vector<RunnerJobRow> rows;
  for (const auto& [key, set] : runners.sets()) {
    for (const RunnerJob& job : set.jobs) rows.push_back(WaitingRow(key, job, set.why));
    for (const RunnerJob& job : set.deferred)
      rows.push_back(WaitingRow(key, job, "max-per-repo is reached by its repository"));
  }
  for (const auto& [id, run] : runners.runs()) rows.push_back(RowOf(id, run, why_no_node));
  for (const auto& [key, set] : runners.sets()) {
    for (const LostJob& lost : set.lost) rows.push_back(LostRow(key, lost));
  }
  return rows;
}

std::vector<Column> RunnerJobColumns() {
  return {{.key = "set", .title = "Set", .fit = kName},
          {.key = "state",
           .title = "State",
           .kind = Kind::kState,
           .words = RunnerJobStates(),
           .fit = {Importance::kAlways}},
          {.key = "age", .title = "Since", .kind = Kind::kTime, .fit = {Importance::kHigh}, .since = "since"},
          {.key = "repository", .title = "Repository", .fit = kName},
          {.key = "job", .title = "Job", .fit = kName},
          {.key = "workflow", .title = "Workflow", .fit = {Importance::kLow, 12}},
          {.key = "node", .title = "Node", .fit = {Importance::kHigh}},
          {.key = "why", .title = "Why", .fit = kSentence},
          {.key = "runner", .title = "Runner", .fit = {Importance::kLow, 12}},
          {.key = "run_url", .title = "Address", .fit = {Importance::kLow, 12}},
          {.key = "id", .title = "Id", .fit = {Importance::kLow}}};
}

Listing ListRunnerJobs(const std::vector<RunnerJobRow>& jobs) {
  Listing listing{RunnerJobColumns(), {}};
  for (const RunnerJobRow& row : jobs) {
    listing.rows.push_back({Cell(std::string(row.set)), Cell(std::string(row.state)), TimeOrNull(row.since),
                            TextOrNothing(row.job.repository), TextOrNothing(row.job.job),
                            TextOrNothing(row.job.workflow), TextOrNothing(row.node.value),
                            TextOrNothing(row.why), TextOrNothing(row.runner), TextOrNothing(row.job.run_url),
                            Cell(std::string(row.id))});
  }
  return listing;
}

std::vector<RunnerSetRow> RunnerSets(const store::RunnerCache& runners) {
  std::map<store::RunnerSetKey, RunnerSetRow> rows;
  for (const auto& [key, set] : runners.sets()) rows[key] = {key, &set};
  for (const auto& [id, run] : runners.runs()) {
    auto row = rows.find({run.service, run.set});
    if (row == rows.end() || run.state == RunState::kEnding) continue;
    bool is_online = run.state == RunState::kOnline;
    ++(run.state == RunState::kJob ? row->second.busy : is_online ? row->second.idle : row->second.starting);
  }
  std::vector<RunnerSetRow> sets;
  for (auto& [key, row] : rows) sets.push_back(std::move(row));
  return sets;
}

std::vector<Column> RunnerSetColumns() {
  return {{.key = "set", .title = "Runners", .fit = {Importance::kAlways}},
          {.key = "state", .title = "State", .fit = {Importance::kHigh}},
          {.key = "age", .title = "Since", .kind = Kind::kTime, .since = "since"},
          {.key = "waiting", .title = "Waiting", .fit = {Importance::kHigh}},
          {.key = "starting", .title = "Starting"},
          {.key = "idle", .title = "Idle"},
          {.key = "busy", .title = "Busy", .fit = {Importance::kHigh}},
          {.key = "max_runners", .title = "At Most"},
          {.key = "why", .title = "Why Jobs Wait", .fit = kSentence},
          {.key = "fault", .title = "Fault", .fit = kSentence},
          {.key = "remedy", .title = "What to Do", .fit = {Importance::kLow, 24}},
          {.key = "hostname", .title = "Host", .fit = {Importance::kLow, 12}},
          {.key = "url", .title = "Address", .fit = {Importance::kLow, 12}},
          {.key = "phantoms", .title = "Phantoms", .fit = {Importance::kLow}}};
}

Listing ListRunnerSets(const std::vector<RunnerSetRow>& sets) {
  Listing listing{RunnerSetColumns(), {}};
  for (const RunnerSetRow& row : sets) {
    const RunnerSetRecord& record = *row.record;
    listing.rows.push_back({Cell(row.key.str()), TextOrNothing(record.state), TimeOrNull(record.since),
                            Cell(record.waiting), Cell(row.starting), Cell(row.idle), Cell(row.busy),
                            Cell(record.max_runners), TextOrNothing(record.why), TextOrNothing(record.fault),
                            TextOrNothing(record.remedy), TextOrNothing(record.hostname),
                            TextOrNothing(record.url), Cell(record.phantoms)});
  }
  return listing;
}

}  // namespace nodepool::listing
