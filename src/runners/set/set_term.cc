#include "runners/set/set_term.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/deadline.h"
#include "async/task.h"
#include "base/error.h"
#include "base/text.h"
#include "runners/context.h"
#include "runners/metrics.h"

namespace nodepool::runners {
namespace {

using sched::RunnerCounts;
using sched::RunnerLimits;

constexpr Duration kSurplusTime = std::chrono::seconds(60);
constexpr Duration kLongWait = std::chrono::seconds(60);  // of a request
constexpr Duration kDecideSoon = std::chrono::milliseconds(200);
constexpr Duration kEvaluation = std::chrono::seconds(30);
constexpr Duration kPhantomsLast = std::chrono::hours(1);
constexpr Duration kFiguresLast = std::chrono::minutes(10);
constexpr Duration kLostShown = std::chrono::hours(24);
constexpr std::size_t kMostLost = 10;
constexpr std::size_t kShownJobs = 50;
constexpr std::size_t kRunIdDigits = 8;

constexpr std::string_view kUnlimited =
    "max-per-repo does not hold: the service assigns jobs without announcing them";

constexpr RunState kStates[] = {RunState::kWanted, RunState::kNode, RunState::kRegistered, RunState::kStarted,
                                RunState::kOnline, RunState::kJob,  RunState::kEnding};

// One of a few words, since each is a metric of its own.
std::string ResultWord(const std::string& result) {
  std::string word = Lower(result);
  constexpr std::string_view kKnown[] = {"succeeded", "failed", "canceled", "skipped", "abandoned"};
  return std::ranges::find(kKnown, word) == std::end(kKnown) ? "other" : word;
}

}  // namespace

SetTerm::SetTerm(SetContext& set)
    : set_(set),
      session_(set, health_, record_,
               {.capacity =
                    [this] {
                      heard_at_ = set_.context.loop.Now();
                      return capacity_;
                    },
                .opened =
                    [this](const sched::JobStatistics& statistics) {
                      NoteStatistics(statistics, set_.context.loop.Now());
                      wake_.Set();
                    },
                .handle = [this](MessageSession& session,
                                 MessageBatch batch) { return HandleBatch(session, std::move(batch)); },
                .write = [this] { return WriteRecord(); }}),
      sweep_(set, [this] { return KnownNow(); }),
      versions_(set, record_, [this] { wake_.Set(); }),
      tasks_(set.context.loop, set.logger) {}

SetTerm::~SetTerm() = default;

Task<> SetTerm::Run() {
  co_await set_.context.leases.WaitSynced();
  // Adopt goes on from what the predecessor wrote last.
  co_await set_.context.runners.CatchUp();
  co_await set_.context.leases.CatchUp();
  Adopt();
  leases_ = set_.context.leases.OnChange([this](const LeaseId& id, const auto*, const auto*) {
    for (const auto& [run, task] : runs_) {
      if (task->record().lease == id) task->Wake();
    }
  });
  co_await Decide();  // before the session, whose questions for messages name the capacity
  tasks_.Spawn("listen to a set of runners", session_.Run());
  tasks_.Spawn("decide about runners", DecideForEver());
  tasks_.Spawn("renew leases of runners", sweep_.RenewLeases());
  tasks_.Spawn("sweep runners", sweep_.Run());
  tasks_.Spawn("follow the runner's versions", versions_.Follow());
  co_await drained_.Wait();
  co_await tasks_.Stop();
  co_await RemoveSet();
}

Task<> SetTerm::Stop() {
  leases_.Reset();
  co_await tasks_.Stop();
}

void SetTerm::Reconfigured() { wake_.Set(); }

// --- Runs --------------------------------------------------------------------

// What the predecessor left.
void SetTerm::Adopt() {
  if (const RunnerSetRecord* known = set_.context.runners.FindSet(set_.key)) record_ = *known;
  record_.hostname = set_.context.hostname;
  record_.state = "starting";
  record_.since = set_.context.loop.Now();
  phantoms_ = std::max<std::int64_t>(0, record_.phantoms);
  if (phantoms_ > 0) phantoms_since_ = set_.context.loop.Now();
  for (RunnerJob& job : record_.deferred) jobs_.Defer(std::move(job));
  for (const auto& [id, run] : set_.context.runners.runs()) {
    if (run.service == set_.key.service && run.set == set_.key.set) Begin(id, run);
  }
}

void SetTerm::Begin(RunId id, RunnerRun record) {
  auto changed = [this] { wake_.Set(); };
  runs_[id] = std::make_unique<RunTask>(set_, health_, id, std::move(record), changed);
  tasks_.Spawn("run a runner", Live(id));
}

Task<> SetTerm::Live(RunId id) {
  co_await runs_.at(id)->Live();
  if (runs_.at(id)->is_phantom()) {
    ++phantoms_;
    phantoms_since_ = set_.context.loop.Now();
    set_.logger.Warning("{}: the service counts a job that never came (now {})", set_.name(), phantoms_);
  }
  KeepLost(*runs_.at(id));
  const RunnerRun& record = runs_.at(id)->record();
  bool is_newer = record.job_time && *record.job_time >= statistics_time_;
  if (is_newer) ended_.push_back({*record.job_time, record.job.repository.empty()});
  runs_.erase(id);
  wake_.Set();
}

void SetTerm::KeepLost(RunTask& run) {
  if (std::optional<LostJob> lost = run.TakeLost()) record_.lost.push_back(std::move(*lost));
}

Task<> SetTerm::StartRun() {
  RunId id;
  do {
    id = RunId(set_.context.random.UuidHex().substr(0, kRunIdDigits));
  } while (runs_.contains(id) || set_.context.runners.runs().contains(id));
  RunnerRun run;
  run.state = RunState::kWanted;
  run.service = set_.key.service;
  run.set = set_.key.set;
  run.runner_name = set_.prefix() + id.value;
  run.created_time = set_.context.loop.Now();
  // Written before anything is made for it: a successor goes on from the record (runners.md 11).
  co_await set_.context.store.runners.WriteRun(id, run);
  Begin(id, std::move(run));
}

RunTask* SetTerm::FindByName(const std::string& runner_name) {
  if (!runner_name.starts_with(set_.prefix())) return nullptr;
  auto found = runs_.find(RunId(runner_name.substr(set_.prefix().size())));
  return found == runs_.end() ? nullptr : found->second.get();
}

// --- Messages ----------------------------------------------------------------

Task<> SetTerm::HandleBatch(MessageSession& session, MessageBatch batch) {
  // Runs and deferred jobs are written before this returns and the message is acknowledged (runners.md 11).
  std::vector<RunnerJob> available;
  std::vector<RunId> told;
  for (const JobMessage& message : batch.jobs) HandleJob(message, available, told);
  if (batch.statistics) NoteStatistics(*batch.statistics, batch.as_of.value_or(set_.context.loop.Now()));
  // With a job that has ended, one that max-per-repo kept back may begin.
  std::vector<RunnerJob> later =
      jobs_.TakeDeferred([this](const auto& job) { return MayHaveMore(job.repository); });
  available.insert(available.end(), later.begin(), later.end());
  co_await Acquire(session, std::move(available));
  for (const RunId& id : told) {
    auto run = runs_.find(id);
    if (run != runs_.end()) co_await run->second->Save();
  }
  co_await Decide();
  co_await WriteRecord();
}

void SetTerm::HandleJob(const JobMessage& message, std::vector<RunnerJob>& available,
                        std::vector<RunId>& told) {
  const RunnerJob& job = message.job;
  RunTask* run = FindByName(message.runner_name);
  switch (message.kind) {
    case JobMessage::Kind::kAvailable:
      available.push_back(job);
      break;
    case JobMessage::Kind::kAssigned:
      NoteAssigned(job);
      break;
    case JobMessage::Kind::kStarted:
      jobs_.End(job.request, set_.context.loop.Now());
      if (run != nullptr) {
        run->JobStarted(job);
        told.push_back(run->id());
      }
      if (job.queued_time)
        set_.context.metrics.Observe(
            kWaitTiming, {set_.key.service, set_.key.set},
            std::max<Duration>(Duration(0), set_.context.loop.Now() - *job.queued_time));
      break;
    case JobMessage::Kind::kCompleted:
      jobs_.End(job.request, set_.context.loop.Now());
      if (run != nullptr) run->JobEnded(message.result);
      set_.context.metrics.Add(kJobsCounter, {set_.key.service, set_.key.set, ResultWord(message.result)});
      set_.logger.Info("{}: job {} has ended: {}", set_.name(), DescribeJob(job), Excerpt(message.result));
      break;
    case JobMessage::Kind::kGone:
      jobs_.End(job.request, set_.context.loop.Now());
      break;
    case JobMessage::Kind::kOther:
      break;
  }
}

// One that is assigned without being announced was not ours to refuse.
void SetTerm::NoteAssigned(const RunnerJob& job) {
  bool is_new = jobs_.Add(job, set_.context.loop.Now());
  if (!is_new || !set_.set().max_per_repo || std::exchange(has_unlimited_jobs_, true)) return;
  set_.logger.Warning("{}: {}", set_.name(), kUnlimited);
}

bool SetTerm::MayHaveMore(const std::string& repository) const {
  const std::optional<std::int64_t>& limit = set_.set().max_per_repo;
  if (!limit) return true;
  std::int64_t count = jobs_.CountOf(repository);
  for (const auto& [id, run] : runs_) {
    if (run->has_job_of(repository)) ++count;
  }
  return count < *limit;
}

// Jobs of public repositories are left alone unless they are allowed: others decide what they run.
Task<std::vector<RunnerJob>> SetTerm::Permitted(std::vector<RunnerJob> jobs) {
  if (set_.settings->service.allows_public) co_return jobs;
  std::vector<RunnerJob> permitted;
  for (RunnerJob& job : jobs) {
    std::shared_ptr<ScaleSets> service = set_.service;
    bool is_public = co_await service->IsPublic(job.repository);
    if (!is_public) {
      permitted.push_back(std::move(job));
    } else if (ReplaceMessage(last_public_, job.repository)) {
      set_.logger.Warning("{}: leaves the jobs of {} alone, which is public: allow-public permits them",
                          set_.name(), Excerpt(job.repository));
    }
  }
  co_return permitted;
}

// The jobs that we get are known before the message is acknowledged; the others were taken or cancelled.
Task<> SetTerm::Acquire(MessageSession& session, std::vector<RunnerJob> jobs) {
  jobs = co_await Permitted(std::move(jobs));
  std::vector<std::int64_t> requests;
  std::vector<std::int64_t> added;
  for (RunnerJob& job : jobs) {
    if (!MayHaveMore(job.repository) && !jobs_.is_full()) {
      jobs_.Defer(std::move(job));
      continue;
    }
    std::int64_t request = job.request;
    requests.push_back(request);
    bool is_new = jobs_.Add(std::move(job), set_.context.loop.Now());
    if (is_new) added.push_back(request);
  }
  if (requests.empty()) co_return;
  std::shared_ptr<ScaleSets> service = set_.service;
  Outcome<std::vector<std::int64_t>> acquired = co_await Attempt(service->Acquire(session, requests));
  for (std::int64_t request : added) {
    bool is_ours = acquired && std::ranges::find(*acquired, request) != acquired->end();
    if (!is_ours) jobs_.Remove(request);
  }
  if (!acquired) acquired.error().Rethrow();
}

void SetTerm::NoteStatistics(const sched::JobStatistics& statistics, WallTime as_of) {
  statistics_ = statistics;
  statistics_time_ = as_of;
  std::erase_if(ended_, [as_of](const EndedJob& ended) { return ended.begun < as_of; });
  jobs_.Compare(statistics, set_.context.loop.Now());
  phantoms_ = sched::PhantomsLeft(phantoms_, statistics);
}

// --- Decisions ---------------------------------------------------------------

RunnerCounts SetTerm::Counts() const {
  RunnerCounts counts{.known_jobs = jobs_.count(), .phantoms = phantoms_};
  // What a node has reported, and no message yet.
  auto is_untold = [](const auto& entry) { return entry.second->has_untold_job(); };
  std::int64_t untold =
      std::ranges::count_if(runs_, is_untold) + std::ranges::count_if(ended_, &EndedJob::is_untold);
  counts.known_jobs = std::max<std::int64_t>(0, counts.known_jobs - untold);
  // Without a session the figures are of the past.
  if (set_.context.loop.Now() - heard_at_ <= kFiguresLast) counts.statistics = statistics_;
  if (counts.statistics) counts.statistics->running += static_cast<std::int64_t>(ended_.size());
  for (const auto& [id, run] : runs_) {
    if (run->state() == RunState::kEnding) continue;
    // The figures still count its job among those that wait.
    bool is_newer = run->state() == RunState::kJob && run->record().job_time >= statistics_time_;
    if (is_newer && counts.statistics) ++counts.statistics->running;
    if (!run->is_free()) {
      ++counts.busy;
    } else if (run->state() == RunState::kWanted) {
      ++counts.wanted;
    } else {
      ++(run->state() == RunState::kOnline ? counts.online : counts.starting);
    }
  }
  return counts;
}

RunnerLimits SetTerm::Limits() const {
  WallTime now = set_.context.loop.Now();
  const SetSettings& settings = *set_.settings;
  RunnerLimits limits{.max_runners = settings.set.max_runners,
                      .idle = settings.set.idle,
                      .is_draining = settings.is_draining,
                      .may_start = !health_.HeldBackUntil(now),
                      .lacks_nodes = health_.LacksNodes(now)};
  std::int64_t own = 0;
  for (const auto& [id, run] : runs_) {
    if (run->state() != RunState::kEnding) ++own;
    bool waits_long = run->state() == RunState::kWanted && run->record().created_time &&
                      now - *run->record().created_time > kLongWait;
    limits.lacks_nodes |= waits_long;
  }
  if (settings.service.max_runners) {
    std::int64_t others = 0;
    for (const auto& [id, run] : set_.context.runners.runs()) {
      bool counts =
          run.service == set_.key.service && run.set != set_.key.set && run.state != RunState::kEnding;
      if (counts) ++others;
    }
    limits.left_of_service = *settings.service.max_runners - own - others;
  }
  return limits;
}

Task<> SetTerm::DecideForEver() {
  for (;;) {
    wake_.Reset();
    Outcome<> decided = co_await Attempt(Decide());
    if (!decided) set_.logger.Warning("{}: {}", set_.name(), decided.error().message());
    Outcome<> written = co_await Attempt(WriteRecord());
    if (!written) set_.logger.Warning("{}: {}", set_.name(), written.error().message());
    Duration pause = std::exchange(is_due_soon_, false) ? kDecideSoon : kEvaluation;
    SteadyTime deadline = set_.context.loop.SteadyNow() + pause;
    co_await EndsBy(set_.context.loop, deadline, "a change of a set of runners", wake_.Wait());
  }
}

Task<> SetTerm::Decide() {
  Gate::Pass pass = co_await deciding_.Enter();
  WallTime now = set_.context.loop.Now();
  if (phantoms_since_ && now - *phantoms_since_ > kPhantomsLast) phantoms_ = 0;
  sched::RunnerCounts counts = Counts();
  sched::RunnerLimits limits = Limits();
  sched::RunnerDemand demand = sched::DecideDemand(counts, limits);
  // Before the first figures nobody knows what the predecessor's runners are for.
  if (!counts.statistics && !set_.settings->is_draining) demand.surplus = 0;
  capacity_ = demand.capacity;
  record_.waiting = demand.waiting;
  std::int64_t deferred = static_cast<std::int64_t>(jobs_.deferred().size());
  record_.why = sched::WhyJobsWait(counts, limits, demand, deferred);
  record_.phantoms = phantoms_;
  record_.max_runners = set_.set().max_runners;
  co_await Start(demand);
  TakeBackSurplus(demand.surplus);
  for (const auto& [id, run] : runs_) run->JobsWait(demand.waiting > 0);
  Report();
  if (HasDrained()) drained_.Set();
}

Task<> SetTerm::Start(sched::RunnerDemand demand) {
  if (demand.start == 0) co_return;
  if (set_.settings->service.max_runners) co_return co_await StartWithinServiceLimit();
  for (std::int64_t i = 0; i < demand.start; ++i) co_await StartRun();
}

// The limit of all sets: one of them at a time counts and begins, also in other daemons.
Task<> SetTerm::StartWithinServiceLimit() {
  store::Tree& tree = set_.context.store.tree;
  auto start = [this](zk::HeldLock&) { return StartUnderLock(); };
  bool has_decided = co_await tree.Holding(tree.TryLockNamed("runners-" + set_.key.service), start);
  if (!has_decided) is_due_soon_ = true;
}

Task<bool> SetTerm::StartUnderLock() {
  // What other sets have begun under this lock counts for the limit.
  co_await set_.context.runners.CatchUp();
  sched::RunnerDemand demand = sched::DecideDemand(Counts(), Limits());
  for (std::int64_t i = 0; i < demand.start; ++i) co_await StartRun();
  co_return true;
}

// Requests that are not served yet go at once, runners after they were free for a while: the next job may
// come.
void SetTerm::TakeBackSurplus(std::int64_t surplus) {
  WallTime now = set_.context.loop.Now();
  while (surplus > 0 && TakeBackYoungest(RunState::kWanted)) --surplus;
  if (surplus <= 0) {
    surplus_since_.reset();
    return;
  }
  if (!surplus_since_) surplus_since_ = now;
  bool is_old = now - *surplus_since_ >= kSurplusTime || set_.settings->is_draining;
  if (!is_old) return;
  for (RunState state : {RunState::kNode, RunState::kRegistered, RunState::kStarted, RunState::kOnline}) {
    while (surplus > 0 && TakeBackYoungest(state)) --surplus;
  }
}

bool SetTerm::TakeBackYoungest(RunState state) {
  RunTask* youngest = nullptr;
  for (const auto& [id, run] : runs_) {
    if (run->state() != state || !run->is_free()) continue;
    if (youngest == nullptr || run->record().created_time > youngest->record().created_time)
      youngest = run.get();
  }
  if (youngest == nullptr) return false;
  youngest->TakeBack();
  return true;
}

void SetTerm::Report() {
  std::map<RunState, int> counts;
  for (const auto& [id, run] : runs_) ++counts[run->state()];
  const std::string& service = set_.key.service;
  for (RunState state : kStates)
    set_.context.metrics.Set(kRunnersGauge, {service, set_.key.set, std::string(ToString(state))},
                             counts[state]);
  set_.context.metrics.Set(kWaitingGauge, {service, set_.key.set}, static_cast<double>(record_.waiting));
  set_.context.metrics.Set(kCapacityGauge, {service, set_.key.set}, static_cast<double>(capacity_));
  set_.context.metrics.Set(kPhantomsGauge, {service, set_.key.set}, static_cast<double>(phantoms_));
  set_.context.metrics.Set(kSessionGauge, {service, set_.key.set}, record_.state == "listening" ? 1 : 0);
}

Task<> SetTerm::WriteRecord() {
  WallTime now = set_.context.loop.Now();
  SetFault fault = health_.Fault(now);
  if (record_.fault != fault.text) record_.since = now;
  record_.fault = std::move(fault.text);
  record_.remedy = std::move(fault.remedy);
  record_.deferred = jobs_.deferred();
  record_.jobs = jobs_.First(kShownJobs);
  NoteLostJobs();
  record_.warnings = Warnings();
  std::string text = ToJson(record_);
  if (text == written_) co_return;
  co_await set_.context.store.runners.WriteSet(set_.key, record_);
  written_ = std::move(text);
}

void SetTerm::NoteLostJobs() {
  WallTime now = set_.context.loop.Now();
  std::erase_if(record_.lost,
                [now](const LostJob& lost) { return !lost.time || now - *lost.time > kLostShown; });
  for (const auto& [id, run] : runs_) KeepLost(*run);
  while (record_.lost.size() > kMostLost) record_.lost.erase(record_.lost.begin());
}

std::vector<std::string> SetTerm::Warnings() {
  for (const auto& [id, run] : runs_) versions_.Seen(run->version());
  std::vector<std::string> warnings;
  if (std::string old = versions_.Warning(); !old.empty()) warnings.push_back(std::move(old));
  if (has_unlimited_jobs_ && set_.set().max_per_repo) warnings.emplace_back(kUnlimited);
  return warnings;
}

// What has a run, for the sweep.
SetSweep::Known SetTerm::KnownNow() const {
  SetSweep::Known known;
  for (const auto& [id, run] : runs_) {
    if (!run->record().lease.empty()) known.leases.insert(run->record().lease);
    known.runner_names.insert(run->record().runner_name);
  }
  return known;
}

// --- The end of a set --------------------------------------------------------

bool SetTerm::HasDrained() const { return set_.settings->is_draining && runs_.empty(); }

Task<> SetTerm::RemoveSet() {
  if (record_.is_made && record_.scale_set != 0) {
    std::shared_ptr<ScaleSets> service = set_.service;
    co_await service->DeleteSet(record_.scale_set);
    set_.logger.Info("{}: deleted the runner scale set {}, which is not configured any more", set_.name(),
                     record_.scale_set);
  }
  co_await set_.context.store.runners.DeleteSet(set_.key);
  // What webhooks said of jobs is the service's: the last of its sets removes it.
  auto is_other = [this](const auto& entry) {
    return entry.first.service == set_.key.service && entry.first.set != set_.key.set;
  };
  if (std::ranges::none_of(set_.context.runners.sets(), is_other))
    co_await set_.context.store.runners.DeleteJobs(set_.key.service);
}

}  // namespace nodepool::runners
