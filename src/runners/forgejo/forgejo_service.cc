#include "runners/forgejo/forgejo_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "async/task.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "base/version.h"
#include "net/http/curl.h"

namespace nodepool::runners::forgejo {

namespace {

namespace json = boost::json;

constexpr std::size_t kMostListed = 1000;
constexpr std::size_t kMostLabels = 100;
constexpr std::int64_t kAttempts = 1000;  // of a job that can be told apart
constexpr int kNeededRelease = 15;

// It becomes a word of a command line.
bool IsHandle(std::string_view text) {
  auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= 100 && !text.starts_with('-') && std::ranges::all_of(text, is_good);
}

WaitingJob ReadWaitingJob(const json::object& object, const std::string& site,
                          const std::string& repository) {
  WaitingJob waiting{.handle = TextIn(object, "handle")};
  RunnerJob& job = waiting.job;
  job.request = WholeIn(object, "id") * kAttempts + WholeIn(object, "attempt") % kAttempts;
  job.job = ShortTextIn(object, "name");
  job.repository = repository.empty() ? fmt::format("repository {}", WholeIn(object, "repo_id")) : repository;
  if (!repository.empty()) job.run_url = fmt::format("{}/{}/actions", site, repository);
  if (const json::array* labels = ArrayIn(object, "runs_on")) {
    for (const json::value& label : *labels) {
      if (label.is_string() && waiting.labels.size() < kMostLabels)
        waiting.labels.emplace_back(label.get_string());
    }
  }
  return waiting;
}

}  // namespace

std::vector<WaitingJob> ReadWaitingJobs(const json::value& answer, const std::string& site,
                                        const std::string& repository) {
  std::vector<WaitingJob> jobs;
  if (!answer.is_array()) return jobs;
  for (const json::value& entry : answer.get_array()) {
    if (jobs.size() == kMostListed) break;
    const json::object* object = entry.if_object();
    if (object == nullptr || WholeIn(*object, "id") <= 0 || !IsHandle(TextIn(*object, "handle"))) continue;
    std::string status = TextIn(*object, "status");
    if (status.empty() || status == "waiting") jobs.push_back(ReadWaitingJob(*object, site, repository));
  }
  std::ranges::sort(jobs, {}, [](const WaitingJob& each) { return each.job.request; });
  return jobs;
}

std::string FaultOfVersion(const std::string& version) {
  int release = 0;
  std::from_chars(version.data(), version.data() + version.size(), release);
  if (release >= kNeededRelease) return "";
  bool is_gitea = version.find("gitea") == version.npos && release < 3;
  return fmt::format("{} {} cannot make a runner for one job by its API: Forgejo {} or newer is needed",
                     is_gitea ? "Gitea" : "Forgejo", Excerpt(version.empty() ? "(unknown)" : version),
                     kNeededRelease);
}

namespace {

constexpr Duration kOrderLasts = std::chrono::seconds(60);
constexpr std::size_t kMostRunners = 10'000;

std::vector<std::string> PartsOf(const std::string& url) {
  return Split(std::string_view(url).substr(std::string_view("https://").size()), '/');
}

std::string RunnersPathOf(const std::vector<std::string>& parts) {
  if (parts.size() == 2) return fmt::format("/orgs/{}/actions/runners", net::PercentEncoded(parts[1]));
  return fmt::format("/repos/{}/{}/actions/runners", net::PercentEncoded(parts[1]),
                     net::PercentEncoded(parts[2]));
}

github::Calls::Options ForgejoOptions(const config::RunnerService& service) {
  return {.service = service.name,
          .ca_path = service.ca,
          .proxy = service.proxy,
          .user_agent = fmt::format("nodepool-runners/{}", Version())};
}

std::optional<RegisteredRunner> RunnerIn(const json::value& value) {
  const json::object* object = value.if_object();
  const json::value* id = object == nullptr ? nullptr : object->if_contains("id");
  if (id == nullptr || !id->is_int64()) return std::nullopt;
  return RegisteredRunner{id->get_int64(), TextIn(*object, "name"), TextIn(*object, "status") == "offline"};
}

sched::JobStatistics AllAssigned(const std::vector<WaitingJob>& jobs) {
  return {.assigned = static_cast<std::int64_t>(jobs.size())};
}

// A word without blanks, which the node's script splits the configuration at.
bool IsWord(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

ForgejoService::ForgejoService(Loop& loop, Random& random, net::HttpClient& http, metrics::Metrics& metrics,
                               const config::RunnerService& service)
    : loop_(loop),
      token_(service.credentials.token),
      calls_(loop, random, http, metrics, ForgejoOptions(service)) {
  std::vector<std::string> parts = PartsOf(service.url);
  site_ = "https://" + parts.front();
  scope_ = RunnersPathOf(parts);
  if (parts.size() == 3) repository_ = parts[1] + "/" + parts[2];
}

net::HttpCall ForgejoService::Call(std::string method, const std::string& path, std::string body) const {
  bool may_be_repeated = method != "POST";
  return {.method = std::move(method),
          .url = fmt::format("{}/api/v1{}", site_, path),
          .headers = {{"Authorization", "token " + token_}, {"Content-Type", "application/json"}},
          .body = std::move(body),
          .may_be_repeated = may_be_repeated};
}

Task<json::value> ForgejoService::Get(std::string_view kind, std::string path) {
  net::HttpReply reply = co_await calls_.Send(kind, Call("GET", path));
  if (Trim(reply.body) == "null") co_return json::value();
  co_return github::ReadJson(kind, reply);
}

Task<std::int64_t> ForgejoService::GroupId(std::string name) {
  if (!name.empty())
    throw Error(Verdict::kInvalid, "Forgejo has no runner groups: take group out of the service");
  json::value answer = co_await Get("version", "/version");
  const json::object* object = answer.if_object();
  std::string fault = FaultOfVersion(object == nullptr ? "" : TextIn(*object, "version"));
  if (!fault.empty()) throw Error(Verdict::kInvalid, fault);
  co_return 0;
}

Task<std::vector<std::int64_t>> ForgejoService::Acquire(MessageSession&, std::vector<std::int64_t> requests) {
  co_return requests;
}

// What a registered runner may run is decided by who made it, an organization or a repository.
Task<bool> ForgejoService::IsPublic(std::string) { co_return false; }

// It refuses no old runners.
Task<std::string> ForgejoService::NewestVersion() { co_return ""; }

// --- Jobs --------------------------------------------------------------------

// Those that fit the set, the oldest first.
Task<std::vector<WaitingJob>> ForgejoService::List(std::int64_t set) {
  std::vector<std::string> labels = Require(set).order.labels;
  std::string path = scope_ + "/jobs?labels=" + net::PercentEncoded(Join(labels, ","));
  json::value answer = co_await Get("jobs", std::move(path));
  std::vector<WaitingJob> jobs = ReadWaitingJobs(answer, site_, repository_);
  std::erase_if(jobs, [&](const WaitingJob& job) { return !Fits(job.labels, labels); });
  co_return jobs;
}

Task<sched::JobStatistics> ForgejoService::Begin(std::int64_t set) {
  std::vector<WaitingJob> jobs = co_await List(set);
  co_return AllAssigned(jobs);
}

Task<std::optional<MessageBatch>> ForgejoService::NextBatch(MessageSession& session, std::int64_t,
                                                            std::int64_t) {
  co_await loop_.SleepFor(polls_[session.set].pause);
  std::vector<WaitingJob> jobs = co_await List(session.set);
  Polls& polls = polls_[session.set];
  polls.pause = polls.pauses.Next(!jobs.empty());
  MessageBatch batch = Compare(Require(session.set), jobs, JobMessage::Kind::kAssigned, loop_.Now());
  batch.statistics = AllAssigned(jobs);
  co_return batch;
}

// --- Runners -----------------------------------------------------------------

std::optional<WaitingJob> ForgejoService::Take(const std::vector<WaitingJob>& jobs,
                                               const RunnerOrder& order) {
  SteadyTime now = loop_.SteadyNow();
  std::map<std::string, Making>& ordered = polls_[order.set].ordered;
  std::erase_if(ordered, [now](const auto& entry) { return now - entry.second.since > kOrderLasts; });
  auto is_free = [&](const WaitingJob& job) {
    auto making = ordered.find(job.handle);
    bool is_others = making != ordered.end() && making->second.runner_name != order.name;
    return !order.taken.contains(job.handle) && !is_others;
  };
  auto job = std::ranges::find_if(jobs, is_free);
  if (job == jobs.end()) return std::nullopt;
  ordered[job->handle] = {order.name, now};
  const std::map<std::int64_t, RunnerJob>& all_known = Require(order.set).now_known;
  auto known = all_known.find(job->job.request);
  WaitingJob chosen = *job;
  if (known != all_known.end()) chosen.job = known->second;
  return chosen;
}

// The configuration is a line of words: address, uuid, token, handle, labels.
Task<Registration> ForgejoService::Register(RunnerOrder order) {
  std::vector<WaitingJob> jobs = co_await List(order.set);
  std::optional<WaitingJob> job = Take(jobs, order);
  if (!job) co_return Registration{};
  std::string body = json::serialize(
      json::object{{"name", order.name}, {"description", "made by Nodepool"}, {"ephemeral", true}});
  Outcome<net::HttpReply> reply =
      co_await Attempt(calls_.Send("register", Call("POST", scope_, std::move(body))));
  if (!reply) polls_[order.set].ordered.erase(job->handle);
  if (!reply) reply.error().Rethrow();
  json::value answer = github::ReadJson("the new runner", *reply);
  std::optional<RegisteredRunner> made = RunnerIn(answer);
  std::string uuid = made ? TextIn(answer.get_object(), "uuid") : "";
  std::string token = made ? TextIn(answer.get_object(), "token") : "";
  if (!IsWord(uuid) || !IsWord(token))
    throw Error(Verdict::kRetry, "Forgejo's answer has no runner with an id, a uuid and a token");
  std::string labels = Join(Require(order.set).order.labels, ",");
  co_return Registration{
      .id = made->id,
      .configuration = fmt::format("{} {} {} {} {}", site_, uuid, token, job->handle, labels),
      .handle = job->handle,
      .job = std::move(job->job)};
}

Task<std::vector<RegisteredRunner>> ForgejoService::ListRunners() {
  json::value answer = co_await Get("runners", scope_ + "?limit=50");
  std::vector<RegisteredRunner> runners;
  if (!answer.is_array()) co_return runners;
  for (const json::value& entry : answer.get_array()) {
    if (runners.size() == kMostRunners) break;
    if (std::optional<RegisteredRunner> runner = RunnerIn(entry)) runners.push_back(std::move(*runner));
  }
  co_return runners;
}

Task<std::optional<RegisteredRunner>> ForgejoService::FindRunner(std::string name) {
  std::vector<RegisteredRunner> runners = co_await ListRunners();
  auto found = std::ranges::find(runners, name, &RegisteredRunner::name);
  co_return found == runners.end() ? std::nullopt : std::optional(*found);
}

// nullopt: it is gone.
Task<std::optional<RegisteredRunner>> ForgejoService::Read(std::int64_t id, bool& is_busy) {
  Outcome<json::value> answer = co_await Attempt(Get("runner", fmt::format("{}/{}", scope_, id)));
  if (FailedWith(answer, Verdict::kNotFound)) co_return std::nullopt;
  if (!answer) answer.error().Rethrow();
  is_busy = answer->is_object() && TextIn(answer->get_object(), "status") == "active";
  co_return RunnerIn(*answer);
}

Task<bool> ForgejoService::HasRunner(std::int64_t id) {
  bool is_busy = false;
  std::optional<RegisteredRunner> runner = co_await Read(id, is_busy);
  co_return runner.has_value();
}

// Forgejo deletes runners that have a job, too, so its state is read first.
Task<Removal> ForgejoService::RemoveRunner(std::int64_t id) {
  bool is_busy = false;
  std::optional<RegisteredRunner> runner = co_await Read(id, is_busy);
  if (!runner) co_return Removal::kGone;
  if (is_busy) co_return Removal::kBusy;
  net::HttpCall call = Call("DELETE", fmt::format("{}/{}", scope_, id));
  Outcome<net::HttpReply> reply = co_await Attempt(calls_.Send("runner", std::move(call)));
  if (FailedWith(reply, Verdict::kNotFound)) co_return Removal::kGone;
  if (!reply) reply.error().Rethrow();
  co_return Removal::kRemoved;
}

}  // namespace nodepool::runners::forgejo
