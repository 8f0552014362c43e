#include "runners/set/run_watch.h"

#include <utility>
#include <vector>

#include "async/task.h"

namespace nodepool::runners {

namespace {

constexpr Duration kSoon = std::chrono::seconds(2);
constexpr Duration kReconnect = std::chrono::seconds(10);
constexpr Duration kLookUp = std::chrono::seconds(60);

}  // namespace

RunWatch::RunWatch(SetContext& set, RunId id, const RunnerRun& run, sched::RunView& seen,
                   std::function<void()> changed)
    : set_(set),
      id_(std::move(id)),
      run_(run),
      seen_(seen),
      changed_(std::move(changed)),
      tasks_(set.context.loop, set.logger) {}

RunWatch::~RunWatch() = default;

Task<> RunWatch::Begin() {
  place_ = co_await FindPlace();
  if (place_) {
    tasks_.Spawn("watch a runner", Watch(*place_));
    tasks_.Spawn("look up a runner", LookUp());
  } else {
    seen_.has_failed = true;
  }
}

Task<> RunWatch::End() {
  tasks_.CancelAll();
  co_await tasks_.Join();
}

// nullopt: the node has no usable record.
Task<std::optional<RunnerPlace>> RunWatch::FindPlace() {
  std::optional<store::StoredNode> node = co_await set_.context.store.nodes.Read(run_.node);
  if (!node) co_return std::nullopt;
  Expected<net::SshNode> ssh = net::SshNodeOf(run_.node, node->record);
  if (!ssh) {
    complaint_ = ssh.error().message();
    co_return std::nullopt;
  }
  const config::RunnerSet& set = set_.set();
  if (!set.user.empty()) ssh->user = set.user;
  RunnerProgram program = set_.settings->service.kind == config::RunnerServiceKind::kForgejo
                              ? RunnerProgram::kForgejo
                              : RunnerProgram::kGithub;
  co_return RunnerPlace{*ssh, set_.settings->service.ssh_key, {id_, set.folder, set.user == "root", program}};
}

Task<> RunWatch::HandOver(std::string configuration) {
  std::shared_ptr<NodeSession> session = session_;
  if (!session || !seen_.is_ready) co_return;
  seen_.is_handed_over = true;
  co_await session->HandOver(std::move(configuration));
}

Task<> RunWatch::EndRunner() {
  if (!place_) co_return;
  Outcome<> ended = co_await Attempt(set_.context.nodes.EndRunner(*place_));
  if (!ended) set_.logger.Debug("{}: {}", set_.name(), ended.error().message());
}

// After a session that has ended comes the next one; the runner does not notice.
Task<> RunWatch::Watch(RunnerPlace place) {
  for (;;) {
    Outcome<> watched = co_await Attempt(WatchOnce(place));
    if (!watched) complaint_ = watched.error().message();
    session_.reset();
    seen_.is_ready = false;
    if (seen_.status || seen_.has_failed) co_return;
    if (!seen_.unreachable_since) seen_.unreachable_since = Now();
    changed_();
    // A runner that has started goes on without us; before that, the next step needs the session.
    bool was_started = seen_.is_started || *run_.state > RunState::kRegistered;
    co_await set_.context.loop.SleepFor(was_started ? kReconnect : kSoon);
  }
}

Task<> RunWatch::WatchOnce(RunnerPlace place) {
  std::shared_ptr<NodeSession> session = set_.context.nodes.Open(std::move(place));
  session_ = session;
  for (;;) {
    std::optional<NodeReport> report = co_await session->Next();
    complaint_ = session->Complaint();
    if (!report) co_return;
    seen_.unreachable_since.reset();
    Take(*report);
    changed_();
  }
}

void RunWatch::Take(const NodeReport& report) {
  switch (report.kind) {
    case NodeReport::Kind::kReady:
      seen_.is_ready = true;
      // A script that says so has no configuration, whatever an earlier session was given.
      seen_.is_handed_over = false;
      break;
    case NodeReport::Kind::kStarted:
      seen_.is_ready = false;
      seen_.is_started = true;
      break;
    case NodeReport::Kind::kOnline:
      if (!std::exchange(seen_.is_online, true)) online_time_ = Now();
      break;
    case NodeReport::Kind::kWorker:
      seen_.has_worker = true;
      break;
    case NodeReport::Kind::kEnded:
      seen_.status = report.status;
      break;
    case NodeReport::Kind::kRefused:
      seen_.has_failed = true;
      complaint_ = report.text;
      break;
    case NodeReport::Kind::kDeprecated:
      is_deprecated_ = true;
      break;
    case NodeReport::Kind::kVersion:
      version_ = report.text;
      break;
  }
}

// Whether the service still knows a runner without a job. That it does not is no proof: a registration may be
// gone at the moment when the job begins.
Task<> RunWatch::LookUp() {
  for (;;) {
    co_await set_.context.loop.SleepFor(kLookUp);
    if (run_.state != RunState::kOnline || run_.runner_id == 0) continue;
    std::shared_ptr<ScaleSets> service = set_.service;
    Outcome<bool> is_known = co_await Attempt(service->HasRunner(run_.runner_id));
    if (!is_known) continue;
    if (*is_known) seen_.gone_since.reset();
    if (!*is_known && !seen_.gone_since) seen_.gone_since = Now();
    changed_();
  }
}

namespace {

constexpr Duration kRenewal = std::chrono::minutes(15);
constexpr Duration kRenewalPause = std::chrono::minutes(1);
constexpr Duration kSweepPause = std::chrono::minutes(10);
constexpr Duration kOldEnough = std::chrono::minutes(5);
constexpr Duration kEndOfJobKept = std::chrono::minutes(10);  // after its last delivery
constexpr Duration kJobKept = std::chrono::hours(24);

}  // namespace

Task<> SetSweep::RenewLeases() {
  for (;;) {
    co_await RenewOnce();
    co_await set_.context.loop.SleepFor(kRenewalPause);
  }
}

Task<> SetSweep::RenewOnce() {
  WallTime now = set_.context.loop.Now();
  for (const LeaseId& id : std::set(known_().leases)) {
    const store::StoredLease* lease = set_.context.leases.Find(id);
    bool is_due =
        lease != nullptr && lease->record.renewed_time && now - *lease->record.renewed_time > kRenewal;
    if (!is_due) continue;
    auto renew = [now](Lease& record) {
      bool lives = record.state == LeaseState::kWaiting || record.state == LeaseState::kHeld;
      if (lives) record.renewed_time = now;
      return lives ? store::Change::kWrite : store::Change::kSkip;
    };
    Outcome<bool> renewed = co_await Attempt(set_.context.store.leases.Update(id, renew));
    if (!renewed) set_.logger.Warning("{}: {}", set_.name(), renewed.error().message());
  }
}

Task<> SetSweep::Run() {
  for (;;) {
    Outcome<> leases = co_await Attempt(SweepLeases());
    if (!leases) set_.logger.Warning("{}: {}", set_.name(), leases.error().message());
    Outcome<> hooked = co_await Attempt(SweepHookedJobs());
    if (!hooked) set_.logger.Warning("{}: {}", set_.name(), hooked.error().message());
    Outcome<> swept = co_await Attempt(SweepRegistrations());
    if (!swept) set_.logger.Debug("{}: sweep: {}", set_.name(), swept.error().message());
    co_await set_.context.loop.SleepFor(offline_since_.empty() ? kSweepPause : kOldEnough);
  }
}

bool SetSweep::IsOurs(const std::string& runner_name) const {
  std::string prefix = set_.prefix();
  return runner_name.starts_with(prefix) && IsRunId(runner_name.substr(prefix.size()));
}

// Registrations of ours that are offline and have no record, seen so for a while.
Task<> SetSweep::SweepRegistrations() {
  std::shared_ptr<ScaleSets> service = set_.service;
  std::vector<RegisteredRunner> runners = co_await service->ListRunners();
  WallTime now = set_.context.loop.Now();
  std::map<std::string, WallTime> still;
  for (const RegisteredRunner& runner : runners) {
    bool is_left = IsOurs(runner.name) && runner.is_offline && !known_().runner_names.contains(runner.name);
    if (!is_left) continue;
    auto known = offline_since_.find(runner.name);
    WallTime since = known == offline_since_.end() ? now : known->second;
    if (now - since < kOldEnough) {
      still[runner.name] = since;
      continue;
    }
    Removal removal = co_await service->RemoveRunner(runner.id);
    if (removal == Removal::kRemoved)
      set_.logger.Info("{}: deleted the registration of runner {}, which nothing is left of", set_.name(),
                       runner.name);
  }
  offline_since_ = std::move(still);
}

// Leases of this set that no run has.
Task<> SetSweep::SweepLeases() {
  std::vector<LeaseId> orphans;
  Known known = known_();
  for (const LeaseId& id : set_.context.leases.OfClient(set_.client())) {
    const store::StoredLease* lease = set_.context.leases.Find(id);
    bool is_ours = lease != nullptr && lease->record.requestor == set_.requestor();
    bool is_old = is_ours && lease->record.created_time &&
                  set_.context.loop.Now() - *lease->record.created_time > kOldEnough;
    if (is_old && !known.leases.contains(id)) orphans.push_back(id);
  }
  for (const LeaseId& id : orphans) {
    set_.logger.Info("{}: ends lease {}, which no run has", set_.name(), id);
    co_await set_.context.store.leases.End(id);
  }
}

// Of the service's other sets, too: what is over matters to none.
Task<> SetSweep::SweepHookedJobs() {
  WallTime now = set_.context.loop.Now();
  std::vector<store::HookedJobKey> old;
  for (const auto& [key, job] : set_.context.runners.jobs()) {
    bool is_over = job.state == WorkflowJobState::kCompleted;
    Duration kept = is_over ? kEndOfJobKept : kJobKept;
    if (key.service == set_.key.service && (!job.seen_time || now - *job.seen_time > kept))
      old.push_back(key);
  }
  for (store::HookedJobKey& key : old) co_await set_.context.store.runners.DeleteJob(std::move(key));
}

}  // namespace nodepool::runners
