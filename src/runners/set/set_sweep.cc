#include "runners/set/set_sweep.h"

#include <vector>

#include "async/attempt.h"

namespace nodepool::runners {
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
