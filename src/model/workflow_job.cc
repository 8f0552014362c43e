#include "model/workflow_job.h"

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <utility>

#include "base/bounded_fields.h"
#include "base/time_text.h"
#include "model/record_fields.h"

namespace nodepool {
namespace {

namespace json = boost::json;

constexpr std::array<std::pair<WorkflowJobState, std::string_view>, 3> kWorkflowJobStates = {
    {{WorkflowJobState::kQueued, "queued"},
     {WorkflowJobState::kInProgress, "in_progress"},
     {WorkflowJobState::kCompleted, "completed"}}};
constexpr std::size_t kMostLabels = 100;
constexpr std::string_view kSecureScheme = "https://";

std::vector<std::string> LabelsIn(const json::object& object) {
  std::vector<std::string> labels;
  const json::array* list = ArrayIn(object, "labels");
  if (list == nullptr) return labels;
  for (const json::value& label : *list) {
    bool is_usable =
        label.is_string() && labels.size() < kMostLabels && label.get_string().size() <= kLongestField;
    if (is_usable) labels.emplace_back(label.get_string());
  }
  return labels;
}

bool IsRepositoryName(std::string_view name) {
  std::size_t slash = name.find('/');
  bool has_parts =
      slash != name.npos && slash > 0 && slash + 1 < name.size() && name.find('/', slash + 1) == name.npos;
  return has_parts && name.size() <= kLongestField && Visible(name) == name;
}

}  // namespace

std::string_view ToString(WorkflowJobState state) {
  return std::ranges::find(kWorkflowJobStates, state, [](const auto& each) { return each.first; })->second;
}

std::optional<WorkflowJobState> ParseWorkflowJobState(std::string_view text) {
  auto word = std::ranges::find(kWorkflowJobStates, text, [](const auto& each) { return each.second; });
  if (word == kWorkflowJobStates.end()) return std::nullopt;
  return word->first;
}

std::optional<WorkflowJob> ReadWorkflowJob(const json::object& object, const std::string& repository) {
  WorkflowJob read{.state = ParseWorkflowJobState(TextIn(object, "status"))};
  read.job.request = WholeIn(object, "id");
  if (!read.state || read.job.request <= 0) return std::nullopt;
  read.run = WholeIn(object, "run_id");
  read.job.repository = repository;
  read.job.job = ShortTextIn(object, "name");
  read.job.workflow = ShortTextIn(object, "workflow_name");
  std::string url = TextIn(object, "html_url");
  if (url.starts_with(kSecureScheme) && url.size() <= kLongestField) read.job.run_url = std::move(url);
  read.job.queued_time = ParseIso8601(TextIn(object, "created_at"));
  read.labels = LabelsIn(object);
  read.runner_name = ShortTextIn(object, "runner_name");
  read.result = ShortTextIn(object, "conclusion");
  return read;
}

Expected<std::optional<WorkflowJob>> ParseWorkflowJobEvent(std::string_view body) {
  boost::system::error_code error;
  json::value value = json::parse(body, error);
  if (error) return Unexpected(Verdict::kInvalid, "the body is not JSON");
  const json::object* job = ObjectIn(value, "workflow_job");
  const json::object* repository = ObjectIn(value, "repository");
  std::string name = repository == nullptr ? "" : TextIn(*repository, "full_name");
  if (job == nullptr || !IsRepositoryName(name))
    return Unexpected(Verdict::kInvalid, "the body has no workflow_job with its repository");
  return ReadWorkflowJob(*job, name);
}

template <class Fields, RecordOf<WorkflowJob> T>
void EachField(Fields& fields, T& job) {
  fields("state", job.state, StateCodec<&ParseWorkflowJobState>());
  fields("service", job.service);
  fields("request", job.job.request);
  fields("repository", job.job.repository);
  fields("workflow", job.job.workflow);
  fields("job", job.job.job);
  fields("run_url", job.job.run_url);
  fields("queued_time", job.job.queued_time);
  fields("assigned_time", job.job.assigned_time);
  fields("run", job.run);
  fields("labels", job.labels);
  fields("runner_name", job.runner_name);
  fields("result", job.result);
  fields("seen_time", job.seen_time);
}

Expected<WorkflowJob> ParseWorkflowJob(std::string_view text) {
  Expected<WorkflowJob> job = ReadRecord(text, WorkflowJob());
  if (!job) return job;
  if (!job->state) return Unexpected(Verdict::kInvalid, "\"state\" is missing");
  return job;
}

std::string ToJson(const WorkflowJob& job) { return WriteRecord(job); }

bool Advance(WorkflowJob& known, const WorkflowJob& newer) {
  bool is_later = newer.state && (!known.state || *newer.state > *known.state);
  if (!is_later) return false;
  std::optional<WallTime> assigned = known.job.assigned_time;
  Foreign foreign = known.foreign;
  known = newer;
  known.foreign = std::move(foreign);
  if (assigned) known.job.assigned_time = assigned;
  return true;
}

}  // namespace nodepool
