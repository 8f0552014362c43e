#include "runners/github/rest_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "async/deadline.h"
#include "async/task.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "net/http/curl.h"
#include "runners/github/jobs.h"

namespace nodepool::runners::github {
namespace {

namespace json = boost::json;

constexpr Duration kLongestMessage = std::chrono::seconds(50);
constexpr Duration kSweep = std::chrono::minutes(5);
constexpr Duration kSweepOfWaiting = std::chrono::minutes(1);
constexpr Duration kPauseOfCall = std::chrono::milliseconds(200);  // 300 calls a minute
constexpr Duration kActive = std::chrono::hours(24);               // a repository that had a job
constexpr std::size_t kMostRunnerPages = 100;
constexpr int kUnprocessable = 422;

// "np" and 6 digits, the set's name, and 8 digits, as we name runners.
bool IsRunnerOfSet(const std::string& runner_name, const std::string& set) {
  constexpr std::size_t kPrefix = 8;
  std::string middle = "-" + set + "-";
  return runner_name.size() == kPrefix + middle.size() + 8 && runner_name.starts_with("np") &&
         Lower(runner_name.substr(kPrefix, middle.size())) == Lower(middle);
}

// The words of scale sets.
std::string SetWordOf(const std::string& conclusion) {
  if (conclusion == "success") return "succeeded";
  if (conclusion == "failure") return "failed";
  return conclusion == "cancelled" ? "canceled" : conclusion;
}

std::string RegistrationRemedy(int status) {
  switch (status) {
    case 403:
      return "GitHub does not let us register a runner there: give the app or token the permission to write "
             "self-hosted runners, and name no group of GitHub's own runners";
    case 404:
      return "GitHub knows no such address or runner group: correct url or group";
    case 409:
      return "the name of the runner is taken";
    case kUnprocessable:
      return "GitHub does not accept the runner: correct the labels of the set";
    default:
      return "";
  }
}

// The same with what to do about it.
[[noreturn]] void ThrowExplained(const Failure& failure) {
  const ServiceError* refusal = RefusalIn(failure);
  std::string remedy = refusal == nullptr ? "" : RegistrationRemedy(refusal->status());
  if (remedy.empty()) failure.Rethrow();
  throw Error(refusal->verdict(), fmt::format("{}: {}", remedy, failure.message()));
}

}  // namespace

RestService::RestService(Loop& loop, Random& random, net::HttpClient& http, metrics::Metrics& metrics,
                         const config::RunnerService& service, const store::RunnerCache& records)
    : loop_(loop),
      settings_(service),
      scope_(ScopeOf(service)),
      calls_(loop, random, http, metrics, OptionsFor(service)),
      login_(calls_, scope_, service.credentials),
      repositories_(loop, login_),
      lists_(login_, repositories_) {
  if (service.mode != config::RunnerMode::kWebhook) return;
  for (const auto& [key, job] : records.jobs()) TakeDelivery(job);
  deliveries_ = records.OnJob([this](const store::HookedJobKey&, const auto*, const WorkflowJob* job) {
    if (job != nullptr) TakeDelivery(*job);
  });
}

void RestService::TakeDelivery(const WorkflowJob& job) {
  if (job.service != settings_.name || !settings_.Covers(job.job.repository)) return;
  jobs_.Note(job, job.seen_time.value_or(loop_.Now()));
  changed_.NotifyAll();
}

// --- Groups ------------------------------------------------------------------

Task<std::int64_t> RestService::GroupId(std::string name) {
  if (name.empty() || Lower(name) == "default") co_return kDefaultGroup;
  if (scope_.kind == Scope::Kind::kRepository)
    throw Error(Verdict::kInvalid, "a repository has the default runner group only: take group out");
  RestCall call{.kind = "group",
                .target = fmt::format("{}/runner-groups?per_page={}", scope_.actions, kRestPage)};
  net::HttpReply reply = co_await login_.Send(std::move(call));
  json::value body = ReadJson("the runner groups", reply);
  const json::array* groups = ArrayIn(body, "runner_groups");
  for (std::size_t i = 0; groups != nullptr && i < groups->size(); ++i) {
    const json::object* group = groups->at(i).if_object();
    if (group == nullptr || TextIn(*group, "name") != name) continue;
    if (TruthIn(*group, "allows_public_repositories") && !settings_.allows_public)
      calls_.logger().Warning(
          "{}: the runner group {} permits public repositories, whose jobs are left alone without "
          "allow-public",
          settings_.name, Excerpt(name));
    co_return WholeIn(*group, "id");
  }
  throw Error(
      Verdict::kInvalid,
      fmt::format("GitHub has no runner group {} that this address may use: make it, or correct group",
                  Excerpt(name)));
}

// --- Lists -------------------------------------------------------------------

// Deliveries are not sent twice, so a list is needed whenever we begin.
Task<sched::JobStatistics> RestService::Begin(std::int64_t set) {
  if (told_.contains(set)) next_list_ = loop_.SteadyNow();
  told_[set] = {};
  co_await ListWhenDue();
  auto waiting = static_cast<std::int64_t>(jobs_.Waiting(Require(set).order.labels).size());
  co_return sched::JobStatistics{.assigned = waiting};
}

// The first one is of all repositories, the sweeps beside webhooks of those that had a job lately.
Task<std::vector<std::string>> RestService::ToList() {
  if (std::string own = settings_.Repository(); !own.empty()) co_return std::vector{own};
  bool is_sweep = settings_.mode == config::RunnerMode::kWebhook && listed_;
  if (is_sweep) {
    std::set<std::string> active = jobs_.RepositoriesSince(loop_.Now() - kActive);
    co_return std::vector(active.begin(), active.end());
  }
  if (!settings_.repositories.empty()) co_return settings_.repositories;
  std::vector<std::string> installed = co_await repositories_.Installed();
  std::erase_if(installed, [this](const std::string& name) { return !settings_.Covers(name); });
  co_return installed;
}

// While GitHub wants no such calls, deliveries go on.
Task<> RestService::ListWhenDue() {
  Gate::Pass pass = co_await listing_.Enter();
  if (!is_list_due()) co_return;
  if (Duration pause = calls_.PauseOf(JobLists::kKind); pause > Duration::zero()) {
    next_list_ = loop_.SteadyNow() + pause;
    co_return;
  }
  WallTime asked = loop_.Now();
  std::int64_t before = lists_.call_count();
  std::vector<std::string> repositories = co_await ToList();
  for (std::string& repository : repositories) co_await List(std::move(repository));
  listed_ = asked;
  next_list_ = loop_.SteadyNow() + PauseAfterList(lists_.call_count() - before);
  changed_.NotifyAll();
}

Duration RestService::PauseAfterList(std::int64_t calls) {
  if (settings_.mode == config::RunnerMode::kWebhook) return jobs_.has_waiting() ? kSweepOfWaiting : kSweep;
  return std::max<Duration>(pauses_.Next(jobs_.has_waiting()), calls * kPauseOfCall);
}

// One that is not there, or not for us, does not keep the others from being listed.
Task<> RestService::List(std::string repository) {
  WallTime asked = loop_.Now();
  Outcome<JobLists::Listed> listed = co_await Attempt(lists_.JobsOf(repository));
  bool is_refused = !listed && calls_.PauseOf(JobLists::kKind) == Duration::zero() &&
                    (IsRefusedWith(listed.error(), kForbidden) || FailedWith(listed, Verdict::kNotFound));
  if (is_refused) {
    if (ReplaceMessage(last_missing_, repository))
      calls_.logger().Warning("{}: the jobs of {} cannot be listed: correct repos, or install the app there",
                              settings_.name, Excerpt(repository));
    co_return;
  }
  if (!listed) listed.error().Rethrow();
  if (listed->is_whole) {
    jobs_.Count(repository, listed->jobs, asked, loop_.Now());
  } else {
    for (WorkflowJob& job : listed->jobs) jobs_.Note(std::move(job), loop_.Now());
  }
}

// --- Messages ----------------------------------------------------------------

Task<std::optional<MessageBatch>> RestService::NextBatch(MessageSession& session, std::int64_t,
                                                         std::int64_t) {
  SteadyTime end = loop_.SteadyNow() + kLongestMessage;
  Require(session.set);
  for (;;) {
    if (is_list_due()) co_await ListWhenDue();
    bool is_new = jobs_.version() != told_[session.set].version;
    if (is_new || loop_.SteadyNow() >= end) co_return Message(session.set);
    co_await EndsBy(loop_, std::min(end, next_list_), "a change of jobs", changed_.Wait());
  }
}

MessageBatch RestService::Message(std::int64_t set) {
  Told& told = told_[set];
  std::vector<WaitingJob> waiting = jobs_.Waiting(Require(set).order.labels);
  MessageBatch batch = Compare(Require(set), waiting, JobMessage::Kind::kAvailable, loop_.Now());
  AddRunnersOfSet(set, batch);
  std::set<std::int64_t> still;
  for (const WaitingJob& each : waiting) {
    if (told.acquired.contains(each.job.request)) still.insert(each.job.request);
  }
  auto ours = static_cast<std::int64_t>(still.size());
  batch.statistics = sched::JobStatistics{
      .available = static_cast<std::int64_t>(waiting.size()) - ours, .acquired = ours, .assigned = ours};
  if (settings_.mode == config::RunnerMode::kPoll) batch.as_of = listed_;
  told.acquired = std::move(still);
  told.now_version = jobs_.version();
  return batch;
}

void RestService::AddRunnersOfSet(std::int64_t set, MessageBatch& batch) {
  for (const WorkflowJob* job : jobs_.WithRunnerSince(told_[set].version)) {
    if (!IsRunnerOfSet(job->runner_name, Require(set).order.name)) continue;
    bool is_over = job->state == WorkflowJobState::kCompleted;
    batch.jobs.push_back({.kind = is_over ? JobMessage::Kind::kCompleted : JobMessage::Kind::kStarted,
                          .job = job->job,
                          .runner_name = job->runner_name,
                          .result = SetWordOf(job->result)});
  }
}

Task<> RestService::Acknowledge(MessageSession& session, std::int64_t batch) {
  co_await PolledSets::Acknowledge(session, batch);
  Told& told = told_[session.set];
  if (batch == Require(session.set).batches) told.version = told.now_version;
}

Task<bool> RestService::MayRun(std::int64_t request) {
  const WorkflowJob* job = jobs_.Find(request);
  if (job == nullptr || job->state != WorkflowJobState::kQueued) co_return false;
  if (settings_.allows_forks) co_return true;
  std::string repository = job->job.repository;
  bool is_of_fork = co_await repositories_.IsOfFork(repository, job->run);
  if (is_of_fork && ReplaceMessage(last_fork_, repository))
    calls_.logger().Warning("{}: leaves jobs of forks of {} alone: allow-forks permits them", settings_.name,
                            Excerpt(repository));
  co_return !is_of_fork;
}

Task<std::vector<std::int64_t>> RestService::Acquire(MessageSession& session,
                                                     std::vector<std::int64_t> requests) {
  std::vector<std::int64_t> acquired;
  for (std::int64_t request : requests) {
    bool may_run = co_await MayRun(request);
    if (may_run) acquired.push_back(request);
  }
  told_[session.set].acquired.insert(acquired.begin(), acquired.end());
  co_return acquired;
}

Task<bool> RestService::IsPublic(std::string repository) {
  return repositories_.IsPublic(std::move(repository));
}

Task<std::string> RestService::NewestVersion() { return repositories_.NewestRunner(scope_.actions); }

// --- Runners -----------------------------------------------------------------

Task<Registration> RestService::Register(RunnerOrder order) {
  Gate::Pass pass = co_await registrations_.Enter();
  const ScaleSetOrder& set = Require(order.set).order;
  RestCall call{
      .kind = "jit-config",
      .method = "POST",
      .target = scope_.actions + "/runners/generate-jitconfig",
      .body = json::serialize(json::object{{"name", order.name},
                                           {"runner_group_id", set.group},
                                           {"labels", json::array(set.labels.begin(), set.labels.end())},
                                           {"work_folder", "_work"}})};
  Outcome<net::HttpReply> reply = co_await Attempt(login_.Send(std::move(call)));
  bool is_pause = calls_.PauseOf("jit-config") > Duration::zero();  // of too many calls
  if (!reply && is_pause) reply.error().Rethrow();
  if (!reply) ThrowExplained(reply.error());
  json::value answer = ReadJson("the new runner", *reply);
  co_return ReadRegistration(answer, "encoded_jit_config");
}

Task<std::vector<RegisteredRunner>> RestService::Runners(std::string query) {
  std::vector<RegisteredRunner> runners;
  for (std::size_t page = 1; page <= kMostRunnerPages; ++page) {
    RestCall call{
        .kind = "runner",
        .target = fmt::format("{}/runners?per_page={}&page={}{}", scope_.actions, kRestPage, page, query)};
    net::HttpReply reply = co_await login_.Send(std::move(call));
    json::value body = ReadJson("the runners", reply);
    const json::array* entries = ArrayIn(body, "runners");
    if (entries == nullptr) break;
    for (const json::value& entry : *entries) {
      if (std::optional<RegisteredRunner> runner = ReadRunner(entry)) runners.push_back(std::move(*runner));
    }
    if (entries->size() < kRestPage) break;
  }
  co_return runners;
}

Task<std::vector<RegisteredRunner>> RestService::ListRunners() { return Runners(""); }

Task<std::optional<RegisteredRunner>> RestService::FindRunner(std::string name) {
  std::vector<RegisteredRunner> runners = co_await Runners("&name=" + net::PercentEncoded(name));
  auto found = std::ranges::find(runners, Lower(name), [](const auto& each) { return Lower(each.name); });
  co_return found == runners.end() ? std::nullopt : std::optional(*found);
}

Task<bool> RestService::HasRunner(std::int64_t id) {
  RestCall call{.kind = "runner", .target = fmt::format("{}/runners/{}", scope_.actions, id)};
  co_return co_await IsFound(login_.Send(std::move(call)));
}

Task<Removal> RestService::RemoveRunner(std::int64_t id) {
  RestCall call{
      .kind = "runner", .method = "DELETE", .target = fmt::format("{}/runners/{}", scope_.actions, id)};
  Outcome<bool> is_removed = co_await Attempt(IsFound(login_.Send(std::move(call))));
  if (is_removed) co_return *is_removed ? Removal::kRemoved : Removal::kGone;
  if (IsRefusedWith(is_removed.error(), kUnprocessable)) co_return Removal::kBusy;
  is_removed.error().Rethrow();
}

}  // namespace nodepool::runners::github
