#include "model/cell.h"
#include "web/api/api_fields.h"

namespace nodepool::web {

namespace json = boost::json;
using listing::RunnerJobRow;
using listing::RunnerSetRow;

namespace {

json::value RunnerTime(const std::optional<WallTime>& time) {
  return time ? json::value(ToSeconds(*time)) : json::value();
}

json::value RunnerText(const std::string& text) { return text.empty() ? json::value() : json::value(text); }

// As this launcher's pools and others' say.
std::string WhyNoNode(const launcher::Launcher& launcher, const RunnerRun& run) {
  const store::StoredLease* lease = launcher.records().leases.Find(run.lease);
  if (lease == nullptr) return "";
  std::optional<launcher::RequestStatus> status = launcher.FindRequest(lease->record.request);
  return status && status->reason ? status->reason->text : "";
}

}  // namespace

std::vector<RunnerJobRow> RunnerJobsOf(const launcher::Launcher& launcher) {
  return listing::RunnerJobs(launcher.records().runners,
                             [&launcher](const RunnerRun& run) { return WhyNoNode(launcher, run); });
}

const FieldTable<RunnerSetRow>& RunnerFields() {
  static const FieldTable<RunnerSetRow> fields({
      {{"set", Text(), "service and name, octo/small"},
       [](const RunnerSetRow& s) { return json::value(s.key.str()); }},
      {{"state", Text().OrNull(), "listening, starting, waiting for a session, fault"},
       [](const RunnerSetRow& s) { return RunnerText(s.record->state); }},
      {{"since", Number().OrNull(), "of the state, in seconds since the epoch"},
       [](const RunnerSetRow& s) { return RunnerTime(s.record->since); }},
      {{"url", Text().OrNull(), "whose set it is in the service"},
       [](const RunnerSetRow& s) { return RunnerText(s.record->url); }},
      {{"hostname", Text().OrNull(), "where the daemon runs that serves it"},
       [](const RunnerSetRow& s) { return RunnerText(s.record->hostname); }},
      {{"waiting", Whole(), "jobs without a runner"},
       [](const RunnerSetRow& s) { return json::value(s.record->waiting); }},
      {{"why", Text().OrNull(), "they wait: a sentence"},
       [](const RunnerSetRow& s) { return RunnerText(s.record->why); }},
      {{"starting", Whole(), "runners that wait for a node, or start on it"},
       [](const RunnerSetRow& s) { return json::value(s.starting); }},
      {{"idle", Whole(), "runners that wait for a job"},
       [](const RunnerSetRow& s) { return json::value(s.idle); }},
      {{"busy", Whole(), "runners that have one"}, [](const RunnerSetRow& s) { return json::value(s.busy); }},
      {{"max_runners", Whole(), "of the configuration"},
       [](const RunnerSetRow& s) { return json::value(s.record->max_runners); }},
      {{"phantoms", Whole(), "jobs that the service counts and that never came"},
       [](const RunnerSetRow& s) { return json::value(s.record->phantoms); }},
      {{"fault", Text().OrNull(), "what is wrong, and why: a sentence"},
       [](const RunnerSetRow& s) { return RunnerText(s.record->fault); }},
      {{"remedy", Text().OrNull(), "what to do about it, likewise"},
       [](const RunnerSetRow& s) { return RunnerText(s.record->remedy); }},
  });
  return fields;
}

const FieldTable<RunnerJobRow>& RunnerJobFields() {
  static const FieldTable<RunnerJobRow> fields({
      {{"id", Text(), "of the run, or waiting-NUMBER, or lost-NODE; unique in its set"},
       [](const RunnerJobRow& j) { return json::value(j.id); }},
      {{"set", Text(), "service and name"}, [](const RunnerJobRow& j) { return json::value(j.set); }},
      {{"state", OneOf(listing::RunnerJobStates()), "of the run; waiting: without one; lost: with its node",
        false, listing::Kind::kState},
       [](const RunnerJobRow& j) { return json::value(j.state); }},
      {{"since", Number().OrNull(), "of the state, in seconds since the epoch, as all times"},
       [](const RunnerJobRow& j) { return RunnerTime(j.since); }},
      {{"repository", Text().OrNull(), "owner and name; null: the runner has no job yet"},
       [](const RunnerJobRow& j) { return RunnerText(j.job.repository); }},
      {{"workflow", Text().OrNull(), "its file or name"},
       [](const RunnerJobRow& j) { return RunnerText(j.job.workflow); }},
      {{"job", Text().OrNull(), "its name"}, [](const RunnerJobRow& j) { return RunnerText(j.job.job); }},
      {{"run_url", Text().OrNull(), "where the service shows it; begins with https://"},
       [](const RunnerJobRow& j) { return RunnerText(j.job.run_url); }},
      {{"node", Text().OrNull(), "that it runs on, or ran on"},
       [](const RunnerJobRow& j) { return RunnerText(j.node.value); }},
      {{"runner", Text().OrNull(), "its name in the service"},
       [](const RunnerJobRow& j) { return RunnerText(j.runner); }},
      {{"why", Text().OrNull(), "it waits, or was lost: a sentence"},
       [](const RunnerJobRow& j) { return RunnerText(j.why); }},
      {{"queued_at", Number().OrNull(), "when it entered the service's queue"},
       [](const RunnerJobRow& j) { return RunnerTime(j.job.queued_time); }},
      {{"assigned_at", Number().OrNull(), "when the set got it"},
       [](const RunnerJobRow& j) { return RunnerTime(j.job.assigned_time); }},
      {{"wanted_at", Number().OrNull(), "when the runner's node was requested"},
       [](const RunnerJobRow& j) { return RunnerTime(j.wanted_time); }},
      {{"node_at", Number().OrNull(), "when it got the node"},
       [](const RunnerJobRow& j) { return RunnerTime(j.node_time); }},
      {{"online_at", Number().OrNull(), "when the runner was online"},
       [](const RunnerJobRow& j) { return RunnerTime(j.online_time); }},
      {{"first_step_at", Number().OrNull(), "when the job began on the node"},
       [](const RunnerJobRow& j) { return RunnerTime(j.job_time); }},
  });
  return fields;
}

}  // namespace nodepool::web
