#include "model/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <utility>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "model/json.h"
#include "model/record_fields.h"

namespace nodepool {

namespace {

constexpr std::string_view kHoldComment = "Automatically held after failing ";

// A text that is not empty and not too long.
struct JobNameCodec : Codec<std::string> {
  static constexpr std::string_view kExpected = "a text of 1 to 255 bytes";
  static Reading Read(std::string_view written, std::string& name) {
    std::string text;
    Reading reading = codec::ReadStrictText(written, text);
    if (reading == Reading::kWrong || text.empty() || text.size() > kMaxJobName) return Reading::kWrong;
    name = std::move(text);
    return reading;
  }
};

}  // namespace

template <class Fields, RecordOf<JobRule> T>
void EachField(Fields& fields, T& rule) {
  fields("name", rule.name, JobNameCodec());
  fields("hold_on_failure", rule.hold_on_failure);
}

template <class Fields, RecordOf<HoldNote> T>
void EachField(Fields& fields, T& note) {
  fields("hold_job", note.hold_job, JobNameCodec());
  fields("comment", note.comment);
  fields("created_time", note.created_time);
}

namespace {

// The name has no default.
template <class Record>
Expected<Record> ReadNamed(std::string_view json, std::string_view key, std::string Record::*name) {
  Expected<Record> record = ReadRecord(json, Record());
  if (record && ((*record).*name).empty())
    return Unexpected(Verdict::kInvalid, fmt::format("\"{}\" is not {}", key, JobNameCodec::kExpected));
  return record;
}

}  // namespace

Expected<JobRule> ParseJobRule(std::string_view json) { return ReadNamed(json, "name", &JobRule::name); }
std::string ToJson(const JobRule& rule) { return WriteRecord(rule); }

Expected<HoldNote> ParseHoldNote(std::string_view json) {
  return ReadNamed(json, "hold_job", &HoldNote::hold_job);
}
std::string ToJson(const HoldNote& note) { return WriteRecord(note); }

std::string HoldComment(const std::string& job) { return std::string(kHoldComment) + job; }

bool CanBeHeld(const Node& node) { return node.state == NodeState::kInUse || node.state == NodeState::kUsed; }

void Hold(Node& node, const HoldNote& note, WallTime now) {
  node.SetState(NodeState::kHold, now);
  node.hold_job = note.hold_job;
  node.comment = note.comment;
}

std::optional<std::string> HeldForJob(const Node& node) {
  if (node.state != NodeState::kHold) return std::nullopt;
  if (node.hold_job && !node.hold_job->empty()) return node.hold_job;
  if (!node.comment || !node.comment->starts_with(kHoldComment)) return std::nullopt;
  return node.comment->substr(kHoldComment.size());
}

namespace {

namespace json = boost::json;

constexpr std::string_view kBlanks = " \t\r\n\f\v";

Error Invalid(std::string message) { return {Verdict::kInvalid, std::move(message)}; }

Expected<JobEvent::Topic> TopicOf(std::string_view word) {
  if (word == "onStarted") return JobEvent::Topic::kStarted;
  if (word == "onCompleted") return JobEvent::Topic::kCompleted;
  if (word == "onFinalized") return JobEvent::Topic::kFinalized;
  return std::unexpected(Invalid(fmt::format(
      "\"{}\" is not a topic; the topics are onStarted, onCompleted, onFinalized", Excerpt(word, 40))));
}

// A missing member and null are the same.
Expected<std::optional<std::string>> Text(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || value->is_null()) return std::optional<std::string>();
  if (!value->is_string() || value->get_string().size() > kMaxJobName) {
    return std::unexpected(
        Invalid(fmt::format("\"{}\" is not a text of at most {} bytes", key, kMaxJobName)));
  }
  return std::optional(std::string(value->get_string()));
}

Expected<json::object> Parse(std::string_view text) {
  if (text.size() > kMaxJobMessageBytes) return std::unexpected(Invalid("it is too long"));
  return ParseJsonObject(text);
}

Expected<JobEvent> EventOf(JobEvent::Topic topic, const json::object& object) {
  JobEvent event;
  event.topic = topic;
  Expected<std::optional<std::string>> name = Text(object, "name");
  if (!name) return std::unexpected(name.error());
  if (name->value_or("").empty()) return std::unexpected(Invalid("there is no \"name\""));
  event.job = **name;
  const json::value* build = object.if_contains("build");
  if (build == nullptr || !build->is_object())
    return std::unexpected(Invalid("there is no object \"build\""));
  Expected<std::optional<std::string>> node_name = Text(build->get_object(), "node_name");
  if (!node_name) return std::unexpected(node_name.error());
  event.node_name = node_name->value_or("");
  Expected<std::optional<std::string>> status = Text(build->get_object(), "status");
  if (!status) return std::unexpected(status.error());
  event.status = std::move(*status);
  return event;
}

}  // namespace

Expected<JobEvent> ParseJobMessage(std::string_view message) {
  std::size_t end = message.find_first_of(kBlanks);
  Expected<JobEvent::Topic> topic = TopicOf(message.substr(0, end));
  if (!topic) return std::unexpected(topic.error());
  std::size_t begin = end == message.npos ? end : message.find_first_not_of(kBlanks, end);
  if (begin == message.npos) return std::unexpected(Invalid("there is no JSON after the topic"));
  Expected<json::object> object = Parse(message.substr(begin));
  if (!object) return std::unexpected(object.error());
  return EventOf(*topic, *object);
}

Expected<JobEvent> ParseJobEvent(std::string_view text) {
  Expected<json::object> object = Parse(text);
  if (!object) return std::unexpected(object.error());
  Expected<std::optional<std::string>> word = Text(*object, "event");
  if (!word) return std::unexpected(word.error());
  Expected<JobEvent::Topic> topic = TopicOf(word->value_or("onFinalized"));
  if (!topic) return std::unexpected(topic.error());
  return EventOf(*topic, *object);
}

namespace {

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
