#include "runners/set/run_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/backoff.h"
#include "async/deadline.h"
#include "async/task.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/text.h"
#include "runners/context.h"
#include "runners/metrics.h"

namespace nodepool::runners {
namespace {

constexpr std::int64_t kLeaseSeconds = 3600;
constexpr std::size_t kLeaseIdDigits = 32;
constexpr Duration kBusyPause = std::chrono::seconds(60);
constexpr Duration kGiveUp = std::chrono::hours(24);
constexpr Duration kLongestWait = std::chrono::hours(1);
constexpr int kDeprecatedStatus = 7;
constexpr Duration kResultTime = std::chrono::seconds(30);  // after the end of the process

bool IsLater(RunState state, RunState other) { return static_cast<int>(state) > static_cast<int>(other); }

std::string Seconds(std::optional<WallTime> from, WallTime to) {
  return fmt::format("{:.1f} s", from ? ToSeconds(to) - ToSeconds(*from) : 0);
}

}  // namespace

RunTask::RunTask(SetContext& set, SetHealth& health, RunId id, RunnerRun record,
                 std::function<void()> changed)
    : set_(set),
      health_(health),
      id_(std::move(id)),
      record_(std::move(record)),
      changed_(std::move(changed)),
      logger_(set.logger.About(log::OfNode(record_.node))),
      watch_(set, id_, record_, seen_, [this] { wake_.Set(); }),
      may_be_registered_(state() != RunState::kWanted) {}

RunTask::~RunTask() = default;

bool RunTask::is_free() const {
  bool has_job =
      state() == RunState::kJob || state() == RunState::kEnding || seen_.is_told_job || seen_.told_end;
  return !has_job && !seen_.is_surplus;
}

bool RunTask::has_untold_job() const { return state() == RunState::kJob && record_.job.repository.empty(); }

bool RunTask::has_job_of(const std::string& repository) const {
  return state() != RunState::kEnding && !seen_.told_end && record_.job.repository == repository;
}

Task<> RunTask::Live() {
  Backoff pauses({.initial = std::chrono::seconds(1), .max = std::chrono::seconds(30)}, set_.context.random);
  std::string last;
  for (;;) {
    Outcome<> done;
    if (state() == RunState::kWanted) {
      done = co_await Attempt(AwaitNode());
    } else if (state() == RunState::kEnding) {
      done = co_await Attempt(Finish());
      if (done) co_return;
    } else {
      done = co_await Attempt(Attend());
    }
    if (done) continue;
    if (ReplaceMessage(last, done.error().message()))
      logger_.Warning("{}: runner {}: {}; trying again", set_.name(), record_.runner_name,
                      done.error().message());
    co_await set_.context.loop.SleepFor(pauses.Next());
  }
}

Task<> RunTask::Write() {
  co_await set_.context.store.runners.WriteRun(id_, record_);
  changed_();
}

void RunTask::EndBecause(std::string reason) {
  record_.state = RunState::kEnding;
  record_.reason = std::move(reason);
}

// --- The node ----------------------------------------------------------------

Task<> RunTask::MakeLease() {
  Context& context = set_.context;
  const config::RunnerSet& set = set_.set();
  Lease lease;
  lease.state = LeaseState::kWaiting;
  lease.client = set_.client();
  lease.labels = {set.node_label};
  lease.requestor = set_.requestor();
  lease.tenant_name = set.tenant;
  lease.lease_seconds = kLeaseSeconds;
  lease.created_time = Now();
  lease.renewed_time = Now();
  NodeRequest request = RequestFor(record_.lease, lease, Now());
  std::string precedence = fmt::format("{:03}", set.priority);
  co_await context.store.leases.Create(record_.lease, std::move(lease), std::move(request),
                                       std::move(precedence));
  // Else AwaitNode, which asks the cache, would take the lease for gone.
  co_await context.leases.CatchUp();
}

// The id of the lease was written before the lease is made, so it is made once.
Task<> RunTask::AwaitNode() {
  Context& context = set_.context;
  bool is_made = false;
  if (record_.lease.empty()) {
    record_.lease = LeaseId(Sha256Hex("runners\n" + id_.value).substr(0, kLeaseIdDigits));
    co_await Write();
  }
  for (;;) {
    wake_.Reset();
    const store::StoredLease* lease = context.leases.Find(record_.lease);
    if (seen_.is_surplus) {
      EndBecause("nobody needs it any more");
    } else if (lease == nullptr && !is_made) {
      co_await MakeLease();
      is_made = true;
      continue;
    } else if (lease == nullptr) {
      EndBecause("its lease is gone");
    } else if (lease->record.state == LeaseState::kFailed) {
      std::string failure = lease->record.failure.value_or("its request failed");
      health_.NoNode(fmt::format("no node of label {}: {}", set_.set().node_label, Excerpt(failure, 300)),
                     Now());
      EndBecause(std::move(failure));
    } else if (lease->record.state == LeaseState::kHeld) {
      if (lease->record.nodes.empty()) {
        EndBecause("its node is gone");
      } else {
        record_.node = lease->record.nodes.front();
        record_.node_time = Now();
        record_.state = RunState::kNode;
      }
    }
    if (state() != RunState::kWanted) break;
    co_await wake_.Wait();
  }
  if (state() == RunState::kNode) {
    logger_ = set_.logger.About(log::OfNode(record_.node));
    may_be_registered_ = false;
    if (record_.created_time)
      context.metrics.Observe(kNodeTiming, {set_.key.service, set_.key.set}, Now() - *record_.created_time);
  }
  co_await Write();
}

bool RunTask::HasNodeNow() const {
  if (!set_.context.leases.synced()) return true;
  const store::StoredLease* lease = set_.context.leases.Find(record_.lease);
  return lease != nullptr && lease->record.state == LeaseState::kHeld && !lease->record.nodes.empty();
}

// --- From the node to the end ------------------------------------------------

Task<> RunTask::Attend() {
  co_await watch_.Begin();
  auto end = [this] { return watch_.End(); };
  co_await WithCleanup(AttendSteps(), end);
}

Task<> RunTask::AttendSteps() {
  for (;;) {
    wake_.Reset();
    sched::RunDecision decision = sched::DecideRun(View(), Times(), Now());
    if (decision.step == sched::RunStep::kWait) {
      Duration pause = std::clamp<Duration>(decision.until - Now(), Duration(1), kLongestWait);
      if (decision.until == WallTime::max()) pause = kLongestWait;
      co_await Pause(pause);
      continue;
    }
    bool is_over = co_await DoStep(std::move(decision));
    if (is_over) co_return;
  }
}

Task<> RunTask::Pause(Duration pause) {
  co_await EndsBy(set_.context.loop, set_.context.loop.SteadyNow() + pause, "the next step of a run",
                  wake_.Wait());
}

// Whether the run has come to its end.
Task<bool> RunTask::DoStep(sched::RunDecision decision) {
  bool is_over = false;
  switch (decision.step) {
    case sched::RunStep::kWait:
      break;
    case sched::RunStep::kRegister:
      co_await Register();
      break;
    case sched::RunStep::kNoteStarted:
      co_await NoteState(RunState::kStarted);
      break;
    case sched::RunStep::kNoteOnline:
      health_.Started();
      NoteOnline();
      co_await NoteState(RunState::kOnline);
      break;
    case sched::RunStep::kNoteJob:
      health_.Started();
      NoteOnline();
      record_.job_time = Now();
      co_await NoteState(RunState::kJob);
      co_await MarkNode();
      break;
    case sched::RunStep::kWarnOfJob:
      seen_.is_warned = true;
      logger_.Warning("{}: runner {} has its job for longer than job-timeout: {}", set_.name(),
                      record_.runner_name, DescribeJob(record_.job));
      break;
    case sched::RunStep::kEnd:
    case sched::RunStep::kTakeBack:
      co_await TakeBackFromNode(std::move(decision), is_over);
      break;
  }
  co_return is_over;
}

// Once; a runner may have its job before we see that it is online.
void RunTask::NoteOnline() {
  if (record_.online_time) return;
  record_.online_time = watch_.online_time().value_or(Now());
  logger_.Info("{}: runner {} is online, {} after it was wanted", set_.name(), record_.runner_name,
               Seconds(record_.created_time, *record_.online_time));
  if (record_.created_time)
    set_.context.metrics.Observe(kStartTiming, {set_.key.service, set_.key.set},
                                 *record_.online_time - *record_.created_time);
}

Task<> RunTask::NoteState(RunState state) {
  record_.state = state;
  if (state == RunState::kJob) ReportFirstStep();
  co_await Write();
}

// Error(kRetry): the service's set is not known yet.
std::int64_t RunTask::KnownScaleSet() const {
  const RunnerSetRecord* known = set_.context.runners.FindSet(set_.key);
  if (known == nullptr || known->scale_set == 0)
    throw Error(Verdict::kRetry, "the service's set is not known yet");
  return known->scale_set;
}

// Of the jobs that other runs are for.
std::set<std::string> RunTask::TakenHandles() const {
  std::set<std::string> taken;
  for (const auto& [id, run] : set_.context.runners.runs()) {
    bool is_other = id != id_ && run.service == set_.key.service && run.state != RunState::kEnding;
    if (is_other && !run.handle.empty()) taken.insert(run.handle);
  }
  return taken;
}

// A registration whose configuration did not reach the node is deleted: its name is taken, or it takes a job.
Task<> RunTask::Register() {
  std::shared_ptr<ScaleSets> service = set_.service;
  std::int64_t scale_set = KnownScaleSet();
  if (may_be_registered_) {
    bool is_removed = co_await RemoveRegistration();
    if (!is_removed) co_return;
  }
  may_be_registered_ = true;
  RunnerOrder order{scale_set, record_.runner_name, TakenHandles()};
  Registration made = co_await service->Register(std::move(order));
  if (made.id == 0) {
    may_be_registered_ = false;
    co_return TakeBack();
  }
  record_.runner_id = made.id;
  record_.handle = made.handle;
  if (!made.handle.empty()) record_.job = made.job;
  record_.state = RunState::kRegistered;
  co_await Write();
  co_await watch_.HandOver(std::move(made.configuration));
}

// False: it has a job, which is noted.
Task<bool> RunTask::RemoveRegistration() {
  std::shared_ptr<ScaleSets> service = set_.service;
  std::int64_t id = record_.runner_id;
  std::optional<RegisteredRunner> found = co_await service->FindRunner(record_.runner_name);
  if (found) id = found->id;
  if (id == 0) co_return true;
  Removal removal = co_await service->RemoveRunner(id);
  if (removal == Removal::kBusy) {
    seen_.is_told_job = true;
    co_return false;
  }
  record_.runner_id = 0;
  may_be_registered_ = false;
  co_return true;
}

// A registration goes before its node; one with a job keeps it.
Task<> RunTask::TakeBackFromNode(sched::RunDecision decision, bool& is_over) {
  bool is_taken_back = decision.step == sched::RunStep::kTakeBack;
  if (is_taken_back && may_be_registered_) {
    bool is_removed = co_await RemoveRegistration();
    if (!is_removed) co_return;
  }
  bool was_started = seen_.is_started || IsLater(state(), RunState::kRegistered);
  bool has_ended = seen_.status.has_value();
  std::string reason(decision.reason);
  bool is_node_at_fault = seen_.has_failed || seen_.unreachable_since;
  if (is_node_at_fault && !watch_.complaint().empty()) reason += ": " + watch_.complaint();
  // Neither a surplus run nor a node that was taken away shows that runners do not start.
  if (watch_.is_deprecated() || seen_.status == kDeprecatedStatus) {
    health_.Deprecated(watch_.version(), Now());
    reason = "the service refuses its version";
  } else if (!IsLater(state(), RunState::kStarted) && !seen_.is_surplus && HasNodeNow()) {
    health_.DidNotStart(reason, Now());
  }
  is_phantom_ = decision.is_phantom;
  if (!has_ended && !seen_.is_surplus) NoteLoss(decision.reason, reason);
  // While the lease lasts: afterwards the node is not ours.
  if (was_started && !has_ended && HasNodeNow()) co_await watch_.EndRunner();
  EndBecause(std::move(reason));
  co_await Write();
  is_over = true;
}

// `cause` is one of a few literals, `reason` says more.
void RunTask::NoteLoss(std::string_view cause, const std::string& reason) {
  set_.context.metrics.Add(kLostCounter, {set_.key.service, set_.key.set, std::string(cause)});
  bool has_job = state() == RunState::kJob;
  bool is_known = !record_.job.repository.empty();
  logger_.Write(has_job ? log::Level::kError : log::Level::kWarning,
                fmt::format("{}: runner {} ends: {}; job: {}", set_.name(), record_.runner_name, reason,
                            is_known ? DescribeJob(record_.job) : "none"));
  if (has_job) lost_ = LostJob{record_.job, record_.node, reason, Now()};
}

Task<> RunTask::Finish() {
  Context& context = set_.context;
  if (!record_.lease.empty()) {
    // Only a node that the lease still has can be held.
    co_await HoldIfFailed();
    bool has_ended = co_await context.store.leases.End(record_.lease);
    if (has_ended && !record_.node.empty())
      logger_.Info("{}: runner {} has ended: {}; its node is given back", set_.name(), record_.runner_name,
                   record_.reason.value_or(""));
  }
  changed_();
  // After the lease: the service may call the runner busy for hours, and the node need not wait.
  if (may_be_registered_) co_await RemoveLeftRegistration();
  co_await context.store.runners.DeleteRun(id_);
}

// The service says how a job has ended a moment after its process has.
Task<> RunTask::HoldIfFailed() {
  std::optional<Duration> kept = set_.set().keep_failed;
  if (!kept || !seen_.is_told_job || record_.node.empty()) co_return;
  SteadyTime deadline = set_.context.loop.SteadyNow() + kResultTime;
  while (!seen_.told_end && set_.context.loop.SteadyNow() < deadline) {
    wake_.Reset();
    co_await EndsBy(set_.context.loop, deadline, "the result of a job", wake_.Wait());
  }
  if (!has_job_failed_ || Now() < set_.kept_until) co_return;
  set_.kept_until = Now() + *kept;
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*kept).count();
  bool is_held = co_await set_.context.store.leases.HoldNode(
      record_.lease, record_.node, fmt::format("job {} failed", DescribeJob(record_.job)), seconds);
  if (is_held)
    logger_.Info("{}: holds the node for {} s, since its job failed: {}", set_.name(), seconds,
                 DescribeJob(record_.job));
}

// While the service thinks that it has a job, it cannot be deleted; that ends by itself.
Task<> RunTask::RemoveLeftRegistration() {
  SteadyTime give_up = set_.context.loop.SteadyNow() + kGiveUp;
  std::string last;
  while (set_.context.loop.SteadyNow() < give_up) {
    std::shared_ptr<ScaleSets> service = set_.service;
    // By its id, which costs one call; by its name where that is not known.
    Outcome<bool> is_gone;
    if (record_.runner_id != 0) {
      Outcome<Removal> removal = co_await Attempt(service->RemoveRunner(record_.runner_id));
      if (removal) is_gone = *removal != Removal::kBusy;
      if (!removal) is_gone = std::unexpected(removal.error());
    } else {
      is_gone = co_await Attempt(RemoveRegistration());
    }
    if (is_gone && *is_gone) co_return;
    if (!is_gone && ReplaceMessage(last, is_gone.error().message()))
      logger_.Warning("{}: the registration of runner {} could not be deleted, trying again: {}", set_.name(),
                      record_.runner_name, is_gone.error().message());
    co_await set_.context.loop.SleepFor(kBusyPause);
  }
  logger_.Error("{}: the registration of runner {} could not be deleted for a day: delete it in the service",
                set_.name(), record_.runner_name);
}

// --- What is seen ------------------------------------------------------------

sched::RunView RunTask::View() const {
  sched::RunView view = seen_;
  view.state = state();
  view.node_time = record_.node_time.value_or(Now());
  view.job_time = record_.job_time.value_or(Now());
  view.has_node = HasNodeNow();
  bool awaits = seen_.awaits_since && state() == RunState::kOnline;
  view.awaits_since = awaits
                          ? std::optional(std::max(*seen_.awaits_since, record_.online_time.value_or(Now())))
                          : std::nullopt;
  return view;
}

sched::RunTimes RunTask::Times() const {
  const config::RunnerSet& set = set_.set();
  return {.start = set.start_timeout,
          .pickup = set.pickup_timeout,
          .job = set.job_timeout,
          .enforces_job = set.enforces_job_timeout};
}

void RunTask::JobStarted(const RunnerJob& job) {
  seen_.is_told_job = true;
  record_.job = job;
  is_marked_ = false;
  logger_.Info("{}: runner {} has job {} on node {}, {} after it was queued", set_.name(),
               record_.runner_name, DescribeJob(job), record_.node, Seconds(job.queued_time, Now()));
  ReportFirstStep();
  wake_.Set();
}

// Once both the job and its first step are known.
void RunTask::ReportFirstStep() {
  if (!record_.job_time || !record_.job.assigned_time || std::exchange(is_first_step_told_, true)) return;
  Duration taken = std::max<Duration>(Duration(0), *record_.job_time - *record_.job.assigned_time);
  set_.context.metrics.Observe(kFirstStepTiming, {set_.key.service, set_.key.set}, taken);
}

// So that the job is seen beside its node, also while the node is held later.
Task<> RunTask::MarkNode() {
  if (record_.job.repository.empty() || std::exchange(is_marked_, true)) co_return;
  auto mark = [this](Node& node) {
    bool is_ours = node.state == NodeState::kInUse && LeaseOf(node) == record_.lease;
    if (is_ours) MarkJob(node, record_);
    return is_ours ? store::Change::kWrite : store::Change::kSkip;
  };
  Outcome<bool> marked = co_await Attempt(set_.context.store.nodes.UpdateUnlocked(record_.node, mark));
  if (!marked) logger_.Debug("{}: {}", set_.name(), marked.error().message());
}

// A run that ends meanwhile is written, or deleted, by its own task.
Task<> RunTask::Save() {
  if (state() == RunState::kEnding) co_return;
  co_await set_.context.store.runners.WriteRun(id_, record_);
  co_await MarkNode();
}

void RunTask::JobEnded(const std::string& result) {
  has_job_failed_ = Lower(result) == "failed";
  if (!seen_.told_end) seen_.told_end = Now();
  wake_.Set();
}

void RunTask::TakeBack() {
  if (std::exchange(seen_.is_surplus, true)) return;
  wake_.Set();
}

void RunTask::JobsWait(bool do_wait) {
  if (seen_.awaits_since.has_value() == do_wait) return;
  seen_.awaits_since = do_wait ? std::optional(Now()) : std::nullopt;
  wake_.Set();
}

}  // namespace nodepool::runners
