#include "runners/github/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <cstdlib>
#include <utility>

#include "async/task.h"
#include "base/clock.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "net/http/curl.h"

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

namespace {

constexpr std::size_t kMostKnown = 10'000;
constexpr Duration kVisibilityKnown = std::chrono::hours(1);
constexpr std::size_t kMostInstalled = 1000;
constexpr std::string_view kArchive = "actions-runner-linux-x64-";
constexpr std::string_view kArchiveEnd = ".tar.gz";
constexpr std::size_t kLongestVersion = 20;

bool IsVersion(std::string_view text) {
  return !text.empty() && text.size() <= kLongestVersion &&
         text.find_first_not_of("0123456789.") == text.npos;
}

}  // namespace

std::string RepositoryPath(const std::string& repository) {
  std::size_t slash = repository.find('/');
  std::string name = slash == repository.npos ? "" : repository.substr(slash + 1);
  return fmt::format("/repos/{}/{}", net::PercentEncoded(repository.substr(0, slash)),
                     net::PercentEncoded(name));
}

// A public repository is visible to everybody, so one that is not found is none.
Task<bool> Repositories::IsPublic(std::string repository) {
  SteadyTime now = loop_.SteadyNow();
  auto known = visibilities_.find(repository);
  if (known != visibilities_.end() && now < known->second.until) co_return known->second.is_public;
  if (repository.find('/') == repository.npos) co_return false;
  RestCall call{.kind = "repository", .target = RepositoryPath(repository)};
  Outcome<net::HttpReply> reply = co_await Attempt(login_.Send(std::move(call)));
  bool is_missing = FailedWith(reply, Verdict::kNotFound);
  if (!reply && !is_missing) reply.error().Rethrow();
  bool is_public = false;
  if (!is_missing) {
    json::value body = ReadJson("the repository", *reply);
    is_public =
        body.is_object() && body.get_object().contains("private") && !TruthIn(body.get_object(), "private");
  }
  if (visibilities_.size() >= kMostKnown) visibilities_.clear();
  visibilities_.insert_or_assign(std::move(repository), Visibility{is_public, now + kVisibilityKnown});
  co_return is_public;
}

void Repositories::NoteRun(const std::string& repository, std::int64_t run, const std::string& head) {
  if (are_of_forks_.size() >= kMostKnown) are_of_forks_.clear();
  are_of_forks_.insert_or_assign({repository, run}, Lower(head) != Lower(repository));
}

Task<bool> Repositories::IsOfFork(std::string repository, std::int64_t run) {
  auto known = are_of_forks_.find({repository, run});
  if (known != are_of_forks_.end()) co_return known->second;
  RestCall call{.kind = "run", .target = fmt::format("{}/actions/runs/{}", RepositoryPath(repository), run)};
  Outcome<net::HttpReply> reply = co_await Attempt(login_.Send(std::move(call)));
  if (FailedWith(reply, Verdict::kNotFound)) co_return true;
  if (!reply) reply.error().Rethrow();
  json::value body = ReadJson("the run", *reply);
  const json::object* head = ObjectIn(body, "head_repository");
  NoteRun(repository, run, head == nullptr ? "" : TextIn(*head, "full_name"));
  co_return are_of_forks_.at({repository, run});
}

// "actions-runner-linux-x64-2.330.0.tar.gz".
Task<std::string> Repositories::NewestRunner(std::string actions) {
  RestCall call{.kind = "downloads", .target = actions + "/runners/downloads"};
  Outcome<net::HttpReply> reply = co_await Attempt(login_.Send(std::move(call)));
  if (FailedWith(reply, Verdict::kNotFound)) co_return "";
  if (!reply) reply.error().Rethrow();
  json::value body = ReadJson("the runner's downloads", *reply);
  if (!body.is_array()) co_return "";
  for (const json::value& entry : body.get_array()) {
    std::string file = entry.is_object() ? TextIn(entry.get_object(), "filename") : "";
    if (!file.starts_with(kArchive) || !file.ends_with(kArchiveEnd)) continue;
    std::string version = file.substr(kArchive.size(), file.size() - kArchive.size() - kArchiveEnd.size());
    if (IsVersion(version)) co_return version;
  }
  co_return "";
}

Task<std::vector<std::string>> Repositories::Installed() {
  std::vector<std::string> names;
  for (std::size_t page = 1; names.size() < kMostInstalled; ++page) {
    RestCall call{.kind = "repositories",
                  .target = fmt::format("/installation/repositories?per_page={}&page={}", kRestPage, page)};
    net::HttpReply reply = co_await login_.Send(std::move(call));
    json::value body = ReadJson("the repositories", reply);
    const json::array* entries = ArrayIn(body, "repositories");
    if (entries == nullptr || entries->empty()) break;
    for (const json::value& entry : *entries) {
      std::string name = entry.is_object() ? TextIn(entry.get_object(), "full_name") : "";
      if (name.find('/') != name.npos) names.push_back(std::move(name));
    }
    if (entries->size() < kRestPage) break;
  }
  co_return names;
}

namespace {

constexpr Duration kListsAreLate = std::chrono::minutes(1);
constexpr Duration kEndKept = std::chrono::hours(1);
constexpr Duration kLongestKept = std::chrono::hours(24);

}  // namespace

void WorkflowJobs::Note(WorkflowJob job, WallTime now) {
  bool is_old = job.job.queued_time && now - *job.job.queued_time > kLongestKept &&
                job.state == WorkflowJobState::kQueued;
  if (is_old) return;
  if (jobs_.size() >= kMostJobs) Drop(now);
  auto [entry, is_new] = jobs_.try_emplace(job.job.request);
  Known& known = entry->second;
  known.seen = std::max(known.seen, now);
  bool is_back = std::exchange(known.is_missing, false);
  if (Advance(known.job, job) || is_back) known.version = ++version_;
  if (is_new && !known.job.job.assigned_time) known.job.job.assigned_time = now;
}

void WorkflowJobs::Count(const std::string& repository, const std::vector<WorkflowJob>& listed,
                         WallTime asked, WallTime now) {
  Drop(now);
  std::set<std::int64_t> numbers;
  for (const WorkflowJob& job : listed) {
    numbers.insert(job.job.request);
    Note(job, now);
  }
  for (auto& [number, known] : jobs_) {
    bool may_be_over = known.job.state != WorkflowJobState::kCompleted && !known.is_missing &&
                       Lower(known.job.job.repository) == Lower(repository) &&
                       asked - known.seen > kListsAreLate;
    if (!may_be_over || numbers.contains(number)) continue;
    known.is_missing = true;
    known.version = ++version_;
  }
}

void WorkflowJobs::Drop(WallTime now) {
  std::erase_if(jobs_, [now](const auto& entry) {
    const Known& known = entry.second;
    bool is_over = known.is_missing || known.job.state == WorkflowJobState::kCompleted;
    return now - known.seen > (is_over ? kEndKept : kLongestKept);
  });
  while (jobs_.size() >= kMostJobs) jobs_.erase(jobs_.begin());  // numbers grow
}

const WorkflowJob* WorkflowJobs::Find(std::int64_t job) const {
  auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second.job;
}

std::vector<WaitingJob> WorkflowJobs::Waiting(const std::vector<std::string>& set_labels) const {
  std::vector<WaitingJob> waiting;
  for (const auto& [number, known] : jobs_) {
    bool waits = known.job.state == WorkflowJobState::kQueued && !known.is_missing;
    if (waits && Fits(known.job.labels, set_labels))
      waiting.push_back({.job = known.job.job, .labels = known.job.labels});
  }
  return waiting;
}

std::vector<const WorkflowJob*> WorkflowJobs::WithRunnerSince(std::uint64_t version) const {
  std::vector<const WorkflowJob*> changed;
  for (const auto& [number, known] : jobs_) {
    if (known.version > version && !known.job.runner_name.empty()) changed.push_back(&known.job);
  }
  return changed;
}

std::set<std::string> WorkflowJobs::RepositoriesSince(WallTime time) const {
  std::set<std::string> repositories;
  for (const auto& [number, known] : jobs_) {
    if (known.seen >= time) repositories.insert(known.job.job.repository);
  }
  return repositories;
}

bool WorkflowJobs::has_waiting() const {
  return std::ranges::any_of(jobs_, [](const auto& entry) {
    return entry.second.job.state == WorkflowJobState::kQueued && !entry.second.is_missing;
  });
}

namespace {

constexpr std::size_t kMostPages = 10;
constexpr int kNotModified = 304;

const json::array& EntriesIn(const json::value& body, std::string_view key) {
  static const json::array none;
  const json::array* entries = ArrayIn(body, key);
  return entries == nullptr ? none : *entries;
}

}  // namespace

// A run that goes on has jobs that wait, too.
Task<JobLists::Listed> JobLists::JobsOf(std::string repository) {
  ++round_;
  Listed listed;
  std::vector<std::int64_t> runs;
  for (const char* status : {"queued", "in_progress"})
    co_await AddRuns(repository, status, runs, listed.is_whole);
  std::ranges::sort(runs);
  runs.erase(std::ranges::unique(runs).begin(), runs.end());
  for (std::int64_t run : runs) co_await AddJobs(repository, run, listed);
  std::erase_if(pages_[repository], [this](const auto& entry) { return entry.second.round != round_; });
  co_return listed;
}

Task<> JobLists::AddRuns(const std::string& repository, std::string status, std::vector<std::int64_t>& runs,
                         bool& is_whole) {
  for (std::size_t number = 1; number <= kMostPages; ++number) {
    Page page = co_await Read(repository,
                              fmt::format("runs?status={}&per_page={}&page={}", status, kRestPage, number));
    runs.insert(runs.end(), page.runs.begin(), page.runs.end());
    if (page.entries < kRestPage) co_return;
  }
  is_whole = false;
}

Task<> JobLists::AddJobs(const std::string& repository, std::int64_t run, Listed& listed) {
  for (std::size_t number = 1; number <= kMostPages; ++number) {
    Page page = co_await Read(
        repository, fmt::format("runs/{}/jobs?filter=latest&per_page={}&page={}", run, kRestPage, number));
    listed.jobs.insert(listed.jobs.end(), page.jobs.begin(), page.jobs.end());
    if (page.entries < kRestPage) co_return;
  }
  listed.is_whole = false;
}

Task<JobLists::Page> JobLists::Read(const std::string& repository, std::string target) {
  ++call_count_;
  RestCall call{.kind = kKind, .target = fmt::format("{}/actions/{}", RepositoryPath(repository), target)};
  call.etag = pages_[repository][target].etag;
  net::HttpReply reply = co_await login_.Send(std::move(call));
  Page& page = pages_[repository][target];
  page.round = round_;
  if (reply.status != kNotModified) Parse(repository, reply, page);
  co_return page;
}

void JobLists::Parse(const std::string& repository, const net::HttpReply& reply, Page& page) {
  json::value body = ReadJson("a list of jobs", reply);
  const json::array& runs = EntriesIn(body, "workflow_runs");
  const json::array& jobs = EntriesIn(body, "jobs");
  page = {.etag = reply.Header("etag"), .entries = runs.size() + jobs.size(), .round = round_};
  for (const json::value& entry : runs) {
    std::int64_t run = entry.is_object() ? WholeIn(entry.get_object(), "id") : 0;
    if (run <= 0 || page.runs.size() == kRestPage) continue;
    page.runs.push_back(run);
    const json::object* head = ObjectIn(entry, "head_repository");
    repositories_.NoteRun(repository, run, head == nullptr ? "" : TextIn(*head, "full_name"));
  }
  for (const json::value& entry : jobs) {
    if (!entry.is_object() || page.jobs.size() == kRestPage) continue;
    if (auto job = ReadWorkflowJob(entry.get_object(), repository)) page.jobs.push_back(std::move(*job));
  }
}

}  // namespace nodepool::runners::github
