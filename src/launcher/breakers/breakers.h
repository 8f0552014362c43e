#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/deadline.h"
#include "async/reconciler.h"
#include "async/task_group.h"
#include "base/ids.h"
#include "base/subscription.h"
#include "driver/provider_environment.h"
#include "sched/breakers/breaker.h"
#include "store/cache/record_cache.h"
#include "store/store.h"

namespace nodepool::launcher {

// The open breakers that the launchers share, as this launcher sees them: their records, and at once what it
// is writing to them itself.
class SharedBreakers {
 public:
  // Both outlive it.
  SharedBreakers(Loop& loop, store::Store& store, store::RecordCache<Breaker>& cache);
  ~SharedBreakers();  // call Stop() first

  // Null: the breaker is closed. Valid until the next change.
  const Breaker* Find(const BreakerKey& key) const;
  // Whether any of the provider, its pools or labels is open, or being written.
  bool AreAnyOf(const ProviderName& provider) const;
  // Those that have a record.
  const std::map<BreakerKey, Breaker>& all() const { return cache_.all(); }

  // Changes the record, in the background, from its newest version on; changes that come together are written
  // together. Find() shows it at once, and until the write has ended; what cannot be written is logged and
  // lost.
  void Update(const BreakerKey& key, store::Breakers::Change change);

  // `before` and `after` as of the cache; null: closed.
  Subscription OnChange(store::RecordCache<Breaker>::Listener listener) const {
    return cache_.OnChange(std::move(listener));
  }
  // Called when a write has ended; Find() shows what came of it.
  Subscription OnWritten(std::function<void(const BreakerKey&)> listener) const {
    return written_.Add(std::move(listener));
  }

  // The session is lost, and with it what is being written.
  void SessionLost() { tasks_.CancelAll(); }
  Task<> Stop() { return tasks_.Stop(); }

 private:
  struct Pending {
    std::optional<Breaker> record;
    std::vector<store::Breakers::Change> changes;  // not written yet
    bool is_writing = false;
  };

  // `ended` is called when the task is over, or was never begun.
  Task<> Write(BreakerKey key, std::shared_ptr<void> ended);
  Task<> WriteAll(BreakerKey key);
  void Ended(const BreakerKey& key);

  store::Store& store_;
  store::RecordCache<Breaker>& cache_;
  log::Logger logger_;
  std::map<BreakerKey, Pending> pending_;  // what is being written
  Listeners<const BreakerKey&> written_;
  TaskGroup tasks_;
};

// The breakers of providers, pools and labels (breaker.md): collects the outcomes of this launcher's
// launches, opens and closes breakers by them, and has one launch at a time probe an open one. What is open
// is shared with other launchers.
class Breakers {
 public:
  // What it needs to know of the launcher; called at any time.
  struct Launcher {
    // The settings of a provider that this launcher serves and launches in; null: it is none of those.
    std::function<const BreakerSettings*(const ProviderName&)> settings_of;
    // As it is announced: unique for the time of its session.
    std::function<std::string()> id;
    std::function<bool(const std::string& id)> is_alive;   // of any launcher
    std::function<bool(const BreakerKey&)> is_configured;  // in a provider that it serves
    // Whether the pool would leave the request to another one because of a breaker.
    std::function<bool(const PoolKey&, const RequestId&)> is_left;
  };

  // All outlive it.
  Breakers(Loop& loop, Random& random, store::Store& store, store::RecordCache<Breaker>& cache,
           Launcher launcher);
  ~Breakers();  // call Stop() first

  // Follows the records, which are complete. `changed` is called when requests may be answered differently.
  void Start(std::function<void()> changed);
  Task<> Stop();
  void SessionLost();
  // Closes the breakers of what this launcher's providers do not offer any more, or whose breakers are off.
  void Reconfigured();

  // How a breaker stands to launches of the label in the pool, also one of another launcher.
  sched::Standing StandingOf(const PoolKey& pool, const LabelName& label) const;
  // Whether any breaker of the provider, its pools or labels is open.
  bool AreAnyOpen(const ProviderName& provider) const;

  // An attempt to launch a node here has ended.
  void AttemptEnded(const driver::LaunchOutcome& outcome);
  // Whether a launch that has failed so far, and may try again, should: not if it is a probe, or if its
  // request can be left to another pool.
  bool IsWorthAnotherAttempt(const driver::LaunchOutcome& failed) const;
  // Whether this launcher probes any breaker and has requested no node for that yet. Its work grows with the
  // open breakers alone.
  bool IsAnyOursToProbe() const;
  // A request for these labels is left to other pools, though a breaker may be probed: requests a node of our
  // own for the probe, so that nobody waits for it.
  void ProbeWanted(const PoolKey& pool, const std::vector<LabelName>& labels);
  // The request was accepted in the pool, and is to launch nodes of some of the labels. Not for `standing`
  // closed.
  void RequestAccepted(const RequestId& request, const PoolKey& pool, const std::vector<LabelName>& labels,
                       sched::Standing standing);
  // Nothing is done for it any more; a probe that launched nothing is left to the next request.
  void RequestEnded(const RequestId& request);

 private:
  // The probe of a breaker.
  struct Probe {
    RequestId request;
    SteadyTime begun{};
  };

  std::optional<BreakerKey> WidestOpen(const PoolKey& pool, const LabelName& label) const;
  sched::OpenBreaker ViewOf(const BreakerKey& key, const Breaker& breaker) const;
  void Count(const BreakerKey& key, const driver::LaunchOutcome& outcome, const BreakerSettings& settings);
  void Open(const BreakerKey& key, Breaker evidence, const BreakerSettings& settings);
  void Close(const BreakerKey& key);
  void Succeeded(const BreakerKey& key, const RequestId& request);
  bool IsForProbe(const RequestId& request) const;
  Task<> RequestProbe(BreakerKey key, LabelName label, std::uint64_t number);
  void WithdrawProbe(const BreakerKey& key);
  void WithdrawRequest(const RequestId& id);
  Task<> Withdraw(RequestId id);
  void ProbeFailed(const BreakerKey& key, const driver::LaunchOutcome& outcome,
                   const BreakerSettings& settings);
  void ClaimDueProbes();
  // Unless another launcher than `former` is the prober by now.
  void Claim(const BreakerKey& key, const std::string& former);
  void Check(const BreakerKey& key, const Breaker& breaker);
  void Seen(const BreakerKey& key, const Breaker* before, const Breaker* after);
  void Log(const BreakerKey& key, const Breaker* before, const Breaker* after) const;
  SteadyTime PauseEnd(const BreakerKey& key, const Breaker& breaker) const;
  void SetDue(const BreakerKey& key, std::optional<SteadyTime> when);
  void SetAlarm();

  Loop& loop_;
  Random& random_;
  Launcher launcher_;
  log::Logger logger_;
  SharedBreakers shared_;
  std::map<BreakerKey, sched::RecentAttempts> attempts_;  // since the breaker last closed
  std::map<BreakerKey, SteadyTime> opened_;               // as seen here
  std::map<BreakerKey, SteadyTime> due_;  // when open ones may be probed, or are checked again
  std::set<std::pair<SteadyTime, BreakerKey>> due_order_;  // the same by time
  std::map<BreakerKey, SteadyTime> prober_since_;          // of open ones, as seen here
  std::map<BreakerKey, Probe> probes_;                     // under way here
  // Our own requests for probes. An entry that comes to nothing stays for a while.
  struct ProbeRequest {
    std::uint64_t number = 0;     // another one of the same breaker has another number
    std::optional<RequestId> id;  // none: it is being made
  };
  std::map<BreakerKey, ProbeRequest> requested_;
  std::uint64_t last_number_ = 0;
  // How a breaker was before it closed, and when that was: one that opens again soon is not probed sooner,
  // and closes later.
  struct Former {
    SteadyTime closed;
    std::int64_t failed_probes = 0;
    std::int64_t relapses = 0;
  };
  std::map<BreakerKey, Former> former_;
  std::function<void()> changed_ = [] {};
  store::Requests& store_requests_;
  std::set<RequestId> unwanted_;  // our own requests that are to be deleted
  Reconciler<RequestId> withdrawing_;
  TaskGroup tasks_;
  Alarm alarm_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
