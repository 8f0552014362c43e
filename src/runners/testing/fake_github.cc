#include "runners/testing/fake_github.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/deadline.h"
#include "base/error.h"
#include "base/text.h"

namespace nodepool::runners::testing {
namespace {

constexpr std::size_t kBatch = 50;

[[noreturn]] void Refuse(Verdict verdict, const std::string& what) { throw Error(verdict, what); }

}  // namespace

// --- The world ---------------------------------------------------------------

std::int64_t FakeGithub::Queue(Duration length, std::string repository, std::string set) {
  Job job{.request = ++last_id_,
          .repository = std::move(repository),
          .set = std::move(set),
          .length = length,
          .queued = loop_.Now()};
  std::int64_t request = job.request;
  jobs_.emplace(request, std::move(job));
  Advance();
  return request;
}

void FakeGithub::Cancel(std::int64_t request) {
  Job& job = jobs_.at(request);
  if (job.state == Job::State::kRunning || job.state == Job::State::kDone) return;
  bool was_told = job.state != Job::State::kQueued;
  job.state = Job::State::kDone;
  job.result = "canceled";
  if (was_told) Tell(job, JobMessage::Kind::kCompleted);
  Advance();
}

std::size_t FakeGithub::CountJobs(Job::State state) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(jobs_, [state](const auto& entry) { return entry.second.state == state; }));
}

void FakeGithub::Occupy(std::int64_t set, std::string owner) {
  sets_.at(set).session = "foreign";
  sets_.at(set).owner = std::move(owner);
}

void FakeGithub::Release(std::int64_t set) { sets_.at(set).session.clear(); }

void FakeGithub::AddRunner(std::string name, bool is_online) {
  runners_[++last_id_] = {.name = std::move(name), .is_online = is_online};
}

void FakeGithub::RemoveRegistration(const std::string& name) {
  std::erase_if(runners_, [&](const auto& entry) { return entry.second.name == name; });
}

bool FakeGithub::HasRunnerNamed(const std::string& name) const { return FindRunner(name).has_value(); }

bool FakeGithub::GoOnline(std::int64_t runner) {
  auto found = runners_.find(runner);
  if (found == runners_.end()) return false;
  found->second.is_online = true;
  Advance();
  return true;
}

std::optional<std::int64_t> FakeGithub::JobOf(std::int64_t runner) {
  auto found = runners_.find(runner);
  if (found == runners_.end()) return std::nullopt;
  return found->second.job;
}

void FakeGithub::Finish(std::int64_t runner, std::string result) {
  auto found = runners_.find(runner);
  if (found == runners_.end()) return;
  Job& job = jobs_.at(found->second.job);
  job.state = Job::State::kDone;
  job.result = std::move(result);
  Tell(job, JobMessage::Kind::kCompleted);
  runners_.erase(found);
  Advance();
}

// --- Jobs --------------------------------------------------------------------

FakeGithub::Set* FakeGithub::SetNamed(const std::string& name) {
  auto found = std::ranges::find_if(sets_, [&](const auto& entry) { return entry.second.name == name; });
  return found == sets_.end() ? nullptr : &found->second;
}

void FakeGithub::Tell(Job& job, JobMessage::Kind kind) {
  Set* set = SetNamed(job.set);
  if (set == nullptr) return;
  auto runner = runners_.find(job.runner);
  RunnerJob about{.request = job.request,
                  .repository = job.repository,
                  .workflow = ".github/workflows/ci.yaml",
                  .job = "build",
                  .run_url = "https://github.com/octo/app/actions/runs/1",
                  .queued_time = job.queued,
                  .assigned_time = job.assigned};
  set->events.push_back({.kind = kind,
                         .job = std::move(about),
                         .runner_name = runner == runners_.end() ? "" : runner->second.name,
                         .result = job.result});
  changed_.NotifyAll();
}

void FakeGithub::AdvanceJob(Job& job) {
  Set* set = SetNamed(job.set);
  if (set == nullptr) return;
  if (job.state == Job::State::kQueued) {
    job.state = is_direct ? Job::State::kAcquired : Job::State::kAnnounced;
    if (!is_direct) Tell(job, JobMessage::Kind::kAvailable);
  }
  if (job.state == Job::State::kAcquired) {
    auto counts = [&](const auto& entry) {
      return entry.second.set == job.set &&
             (entry.second.state == Job::State::kAssigned || entry.second.state == Job::State::kRunning);
    };
    if (std::ranges::count_if(jobs_, counts) < set->capacity) {
      job.state = Job::State::kAssigned;
      job.assigned = loop_.Now();
      Tell(job, JobMessage::Kind::kAssigned);
    }
  }
  if (job.state != Job::State::kAssigned) return;
  for (auto& [id, runner] : runners_) {
    if (!runner.is_online || runner.job != 0 || runner.set == 0 || sets_.at(runner.set).name != job.set)
      continue;
    runner.job = job.request;
    job.runner = id;
    job.state = Job::State::kRunning;
    ++job.times_started;
    Tell(job, JobMessage::Kind::kStarted);
    return;
  }
}

void FakeGithub::Advance() {
  for (auto& [request, job] : jobs_) AdvanceJob(job);
  changed_.NotifyAll();
}

sched::JobStatistics FakeGithub::Statistics(const Set& set) const {
  sched::JobStatistics statistics;
  if (!has_figures) return statistics;
  for (const auto& [request, job] : jobs_) {
    if (job.set != set.name) continue;
    bool is_running = job.state == Job::State::kRunning;
    bool is_assigned = is_running || job.state == Job::State::kAssigned;
    if (job.state == Job::State::kAnnounced) ++statistics.available;
    if (job.state == Job::State::kAcquired || is_assigned) ++statistics.acquired;
    if (is_assigned) ++statistics.assigned;
    if (is_running) ++statistics.running;
  }
  statistics.assigned += phantoms;
  return statistics;
}

// --- Calls -------------------------------------------------------------------

FakeGithub::Set& FakeGithub::Require(std::int64_t set) {
  auto found = sets_.find(set);
  if (found == sets_.end()) Refuse(Verdict::kNotFound, "there is no such set");
  return found->second;
}

void FakeGithub::RequireSession(const MessageSession& session) {
  if (Require(session.set).session != session.id) Refuse(Verdict::kNotFound, "there is no such session");
}

std::optional<ScaleSet> FakeGithub::FindSet(const std::string& name) const {
  for (const auto& [id, set] : sets_) {
    if (set.name == name) return ScaleSet{id, set.labels, true};
  }
  return std::nullopt;
}

ScaleSet FakeGithub::MakeSet(const ScaleSetOrder& order) {
  if (FindSet(order.name)) Refuse(Verdict::kConflict, "the set exists");
  std::int64_t id = ++last_id_;
  std::vector<std::string> labels = drops_labels ? std::vector{order.name} : order.labels;
  sets_[id] = {.name = order.name, .labels = labels};
  Advance();
  return {id, labels, true};
}

ScaleSet FakeGithub::ChangeSet(std::int64_t id, const ScaleSetOrder& order) {
  if (!drops_labels) Require(id).labels = order.labels;
  return {id, Require(id).labels, true};
}

void FakeGithub::DeleteSet(std::int64_t id) { sets_.erase(id); }

MessageSession FakeGithub::OpenSession(std::int64_t set, std::string owner) {
  Set& found = Require(set);
  if (!found.session.empty())
    Refuse(Verdict::kConflict, "already has an active session for owner " + found.owner);
  found.session = fmt::format("session-{}", ++last_id_);
  found.owner = owner;
  return {set, found.session, std::move(owner), "https://queue", "token", Statistics(found)};
}

void FakeGithub::CloseSession(std::int64_t set, const std::string& session) {
  auto found = sets_.find(set);
  if (found != sets_.end() && found->second.session == session) found->second.session.clear();
  changed_.NotifyAll();
}

Task<std::optional<MessageBatch>> FakeGithub::NextBatch(MessageSession session, std::int64_t last,
                                                        std::int64_t capacity) {
  SteadyTime until = loop_.SteadyNow() + poll;
  RequireSession(session);
  Require(session.set).capacity = capacity;
  Advance();
  for (;;) {
    RequireSession(session);
    Set& set = Require(session.set);
    auto pending = set.batches.upper_bound(last);
    if (pending == set.batches.end() && !set.events.empty()) {
      std::vector<JobMessage> batch;
      while (!set.events.empty() && batch.size() < kBatch) {
        batch.push_back(set.events.front());
        set.events.pop_front();
      }
      pending = set.batches.emplace(++last_id_, std::move(batch)).first;
    }
    if (pending != set.batches.end())
      co_return MessageBatch{pending->first, pending->second, Statistics(set)};
    if (loop_.SteadyNow() >= until) co_return std::nullopt;
    co_await EndsBy(loop_, until, "a message", changed_.Wait());
  }
}

void FakeGithub::Acknowledge(const MessageSession& session, std::int64_t batch) {
  RequireSession(session);
  Require(session.set).batches.erase(batch);
}

std::vector<std::int64_t> FakeGithub::Acquire(const MessageSession& session,
                                              const std::vector<std::int64_t>& requests) {
  RequireSession(session);
  std::vector<std::int64_t> acquired;
  for (std::int64_t request : requests) {
    auto job = jobs_.find(request);
    if (job == jobs_.end() || job->second.state != Job::State::kAnnounced) continue;
    job->second.state = Job::State::kAcquired;
    acquired.push_back(request);
  }
  Advance();
  return acquired;
}

Registration FakeGithub::Register(std::int64_t set, const std::string& name) {
  Require(set);
  if (FindRunner(name)) Refuse(Verdict::kConflict, "a runner with this name exists");
  std::int64_t id = ++last_id_;
  runners_[id] = {.name = name, .set = set};
  return {id, fmt::format("{}", id)};
}

std::optional<RegisteredRunner> FakeGithub::FindRunner(const std::string& name) const {
  for (const auto& [id, runner] : runners_) {
    if (runner.name == name) return RegisteredRunner{id, runner.name, !runner.is_online};
  }
  return std::nullopt;
}

Removal FakeGithub::RemoveRunner(std::int64_t id) {
  auto found = runners_.find(id);
  if (found == runners_.end()) return Removal::kGone;
  if (found->second.job != 0) return Removal::kBusy;
  runners_.erase(found);
  return Removal::kRemoved;
}

std::vector<RegisteredRunner> FakeGithub::ListRunners() const {
  std::vector<RegisteredRunner> list;
  for (const auto& [id, runner] : runners_) list.push_back({id, runner.name, !runner.is_online});
  return list;
}

// --- A daemon's connection ---------------------------------------------------

template <class F>
auto FakeConnection::Call(std::string name, F work) -> Task<std::invoke_result_t<F>> {
  using Result = std::invoke_result_t<F>;
  ++calls[name];
  co_await loop_.SleepFor(std::chrono::milliseconds(20));
  check_(name, Moment::kBefore);
  if constexpr (std::is_void_v<Result>) {
    work();
    check_(name, Moment::kAfter);
  } else {
    Result result = work();
    check_(name, Moment::kAfter);
    co_return result;
  }
}

Task<std::int64_t> FakeConnection::GroupId(std::string) { co_return 1; }
Task<std::optional<ScaleSet>> FakeConnection::FindSet(std::string name, std::int64_t) {
  return Call("FindSet", [this, name] { return github_.FindSet(name); });
}
Task<ScaleSet> FakeConnection::MakeSet(ScaleSetOrder order) {
  return Call("MakeSet", [this, order] { return github_.MakeSet(order); });
}
Task<ScaleSet> FakeConnection::ChangeSet(std::int64_t id, ScaleSetOrder order) {
  return Call("ChangeSet", [this, id, order] { return github_.ChangeSet(id, order); });
}
Task<> FakeConnection::DeleteSet(std::int64_t id) {
  return Call("DeleteSet", [this, id] { github_.DeleteSet(id); });
}
Task<MessageSession> FakeConnection::OpenSession(std::int64_t set, std::string owner) {
  return Call("OpenSession", [this, set, owner] { return github_.OpenSession(set, owner); });
}
Task<> FakeConnection::CloseSession(std::int64_t set, std::string session) {
  return Call("CloseSession", [this, set, session] { github_.CloseSession(set, session); });
}
Task<std::optional<MessageBatch>> FakeConnection::NextBatch(MessageSession& session, std::int64_t last,
                                                            std::int64_t capacity) {
  ++calls["NextBatch"];
  check_("NextBatch", Moment::kBefore);
  std::optional<MessageBatch> batch = co_await github_.NextBatch(session, last, capacity);
  check_("NextBatch", Moment::kAfter);
  co_return batch;
}
Task<> FakeConnection::Acknowledge(MessageSession& session, std::int64_t batch) {
  return Call("Acknowledge", [this, session, batch] { github_.Acknowledge(session, batch); });
}
Task<std::vector<std::int64_t>> FakeConnection::Acquire(MessageSession& session,
                                                        std::vector<std::int64_t> requests) {
  return Call("Acquire", [this, session, requests] { return github_.Acquire(session, requests); });
}
Task<Registration> FakeConnection::Register(RunnerOrder order) {
  return Call("Register", [this, order] { return github_.Register(order.set, order.name); });
}
Task<std::optional<RegisteredRunner>> FakeConnection::FindRunner(std::string name) {
  return Call("FindRunner", [this, name] { return github_.FindRunner(name); });
}
Task<bool> FakeConnection::HasRunner(std::int64_t id) {
  return Call("HasRunner", [this, id] { return github_.HasRunner(id); });
}
Task<Removal> FakeConnection::RemoveRunner(std::int64_t id) {
  return Call("RemoveRunner", [this, id] { return github_.RemoveRunner(id); });
}
Task<bool> FakeConnection::IsPublic(std::string repository) {
  co_return github_.public_repositories.contains(repository);
}
Task<std::vector<RegisteredRunner>> FakeConnection::ListRunners() {
  return Call("ListRunners", [this] { return github_.ListRunners(); });
}

}  // namespace nodepool::runners::testing
