#include "runners/github/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <cstdlib>
#include <utility>

#include "base/bounded_fields.h"
#include "base/text.h"
#include "base/time_text.h"
#include "net/http/url.h"

namespace nodepool::runners::github {
namespace {

namespace json = boost::json;

constexpr double kYear2000 = 946'684'800;

constexpr std::pair<std::string_view, JobMessage::Kind> kKinds[] = {
    {"JobAvailable", JobMessage::Kind::kAvailable},
    {"JobAssigned", JobMessage::Kind::kAssigned},
    {"JobStarted", JobMessage::Kind::kStarted},
    {"JobCompleted", JobMessage::Kind::kCompleted}};

JobMessage::Kind KindOf(const std::string& word) {
  for (const auto& [name, kind] : kKinds) {
    if (name == word) return kind;
  }
  return JobMessage::Kind::kOther;
}

// "2026-11-28T00:16:20.123Z"; the year 1 stands for no time.
std::optional<WallTime> TimeIn(const json::object& object, std::string_view key) {
  std::string text = TextIn(object, key);
  std::optional<WallTime> time = ParseIso8601(text);
  if (!time || *time < FromSeconds(kYear2000)) return std::nullopt;
  std::size_t point = text.find('.');
  double fraction = point == text.npos ? 0 : std::strtod(text.c_str() + point, nullptr);
  return *time + FromSeconds(fraction).time_since_epoch();
}

// A count; others are bounded to what is plausible.
std::int64_t CountIn(const json::object& object, std::string_view key) {
  constexpr std::int64_t kMost = 1'000'000'000;
  return std::clamp<std::int64_t>(WholeIn(object, key), 0, kMost);
}

// "octo/app/.github/workflows/ci.yaml@refs/heads/main" -> ".github/workflows/ci.yaml"
std::string WorkflowIn(std::string text, const std::string& repository) {
  text = text.substr(0, text.find('@'));
  return text.starts_with(repository + "/") ? text.substr(repository.size() + 1) : text;
}

JobMessage ReadJob(const json::object& object, const std::string& site) {
  JobMessage message{.kind = KindOf(TextIn(object, "messageType"))};
  RunnerJob& job = message.job;
  job.request = WholeIn(object, "runnerRequestId");
  std::string owner = ShortTextIn(object, "ownerName");
  std::string name = ShortTextIn(object, "repositoryName");
  if (!name.empty()) job.repository = owner.empty() ? name : fmt::format("{}/{}", owner, name);
  job.job = ShortTextIn(object, "jobDisplayName");
  job.workflow = WorkflowIn(ShortTextIn(object, "jobWorkflowRef"), job.repository);
  std::int64_t run = WholeIn(object, "workflowRunId");
  if (run > 0 && !owner.empty() && !name.empty())
    job.run_url = fmt::format("{}/{}/{}/actions/runs/{}", site, net::PercentEncoded(owner),
                              net::PercentEncoded(name), run);
  job.queued_time = TimeIn(object, "queueTime");
  job.assigned_time = TimeIn(object, "scaleSetAssignTime");
  message.runner_name = ShortTextIn(object, "runnerName");
  message.result = ShortTextIn(object, "result");
  return message;
}

// The body is a text with JSON in it.
std::vector<JobMessage> ReadJobs(const std::string& body, const std::string& site) {
  std::vector<JobMessage> jobs;
  boost::system::error_code error;
  json::value list = json::parse(body, error);
  if (error || !list.is_array()) return jobs;
  for (const json::value& entry : list.get_array()) {
    if (jobs.size() >= kMaxJobsOfBatch) break;
    if (entry.is_object()) jobs.push_back(ReadJob(entry.get_object(), site));
  }
  return jobs;
}

}  // namespace

std::optional<ScaleSet> ReadSet(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr || WholeIn(*object, "id") <= 0) return std::nullopt;
  ScaleSet set{.id = WholeIn(*object, "id")};
  if (const json::array* labels = ArrayIn(*object, "labels")) {
    for (const json::value& label : *labels) {
      if (label.is_object()) set.labels.push_back(TextIn(label.get_object(), "name"));
    }
  }
  const json::object* setting = ObjectIn(*object, "RunnerSetting");
  if (setting == nullptr) setting = ObjectIn(*object, "runnerSetting");
  set.has_updates_disabled = setting != nullptr && TruthIn(*setting, "disableUpdate");
  return set;
}

std::optional<sched::JobStatistics> ReadStatistics(const json::value& parent) {
  const json::object* object = ObjectIn(parent, "statistics");
  if (object == nullptr) return std::nullopt;
  return sched::JobStatistics{.available = CountIn(*object, "totalAvailableJobs"),
                              .acquired = CountIn(*object, "totalAcquiredJobs"),
                              .assigned = CountIn(*object, "totalAssignedJobs"),
                              .running = CountIn(*object, "totalRunningJobs")};
}

std::optional<MessageSession> ReadSession(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) return std::nullopt;
  MessageSession session{.id = TextIn(*object, "sessionId"),
                         .owner = TextIn(*object, "ownerName"),
                         .queue_url = TextIn(*object, "messageQueueUrl"),
                         .queue_token = TextIn(*object, "messageQueueAccessToken")};
  session.statistics = ReadStatistics(value).value_or(sched::JobStatistics());
  bool is_whole =
      !session.id.empty() && session.queue_url.starts_with("https://") && !session.queue_token.empty();
  return is_whole ? std::optional(std::move(session)) : std::nullopt;
}

std::optional<MessageBatch> ReadBatch(const json::value& value, const std::string& site) {
  const json::object* object = value.if_object();
  if (object == nullptr || WholeIn(*object, "messageId") <= 0) return std::nullopt;
  MessageBatch batch{.id = WholeIn(*object, "messageId")};
  batch.statistics = ReadStatistics(value);
  if (TextIn(*object, "messageType") == "RunnerScaleSetJobMessages")
    batch.jobs = ReadJobs(TextIn(*object, "body"), site);
  return batch;
}

Registration ReadRegistration(const json::value& answer, std::string_view key) {
  const json::object* runner = ObjectIn(answer, "runner");
  Registration made;
  if (runner != nullptr) {
    made.id = WholeIn(*runner, "id");
    made.configuration = TextIn(answer.get_object(), key);
  }
  bool is_line = made.configuration.find_first_of("\r\n\0") == std::string::npos;
  if (made.id <= 0 || made.configuration.empty() || !is_line)
    throw Error(Verdict::kRetry, "GitHub's answer has no runner with a just-in-time configuration");
  return made;
}

std::optional<RegisteredRunner> ReadRunner(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr || WholeIn(*object, "id") <= 0) return std::nullopt;
  return RegisteredRunner{.id = WholeIn(*object, "id"),
                          .name = TextIn(*object, "name"),
                          .is_offline = Lower(TextIn(*object, "status")) == "offline"};
}

}  // namespace nodepool::runners::github
