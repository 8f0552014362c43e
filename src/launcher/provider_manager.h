#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async/loop.h"
#include "async/task_group.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log/logging.h"
#include "driver/driver.h"
#include "driver/loading/load_config.h"
#include "driver/provider_environment.h"
#include "driver/records_environment.h"
#include "launcher/context.h"
#include "launcher/stats/stats_metrics.h"
#include "model/breaker.h"
#include "model/component.h"
#include "model/node.h"
#include "model/provider_pause.h"
#include "process/command.h"
#include "store/cache/caches.h"

namespace nodepool::launcher {

// The state of providers and pools, read-only: of this launcher's own, and of others as they announce them.

struct LabelStatus {
  LabelName name;
  bool is_available = false;         // a node could be launched, given capacity
  std::size_t free_nodes = 0;        // ready, for any request
  std::optional<std::string> fault;  // why none can be launched
};

// In all amounts, a resource that a limit does not name is unlimited.
struct PoolStatus {
  PoolName name;
  LauncherId launcher;  // as it is announced
  bool is_registered = false;
  bool is_draining = false;  // not configured any more
  bool is_waiting = false;   // an accepted request waits for capacity
  int priority = 100;
  std::optional<std::size_t> requests;  // accepted, not finished; not known of other launchers' pools
  Resources limit;
  Resources used;
  Resources reserved;                     // the part of it without a node yet: of launches that were decided
  std::map<std::string_view, int> nodes;  // by state
  std::vector<LabelStatus> labels;
};

// Whether a provider can be used (D-30).
struct ProviderHealth {
  bool is_up = false;
  bool was_up = false;   // it is, or it was before the fault
  WallTime since{};      // since when it is up, failing, or being started for the first time
  std::string fault;     // why it cannot be used; empty: it is up, or being started for the first time
  bool is_away = false;  // nodes cannot be launched because of it (driver::ProviderFault::is_outage)
  std::optional<SteadyTime> next_attempt;  // to use it, when that failed
};

struct ProviderStatus {
  ProviderName name;
  std::vector<std::string> launchers;  // hostnames of those that serve it, in order
  bool is_own = true;                  // this launcher serves it
  std::string driver;                  // empty: unknown
  ProviderState state = ProviderState::kStarting;
  WallTime since{};
  bool is_draining = false;  // not configured any more
  std::optional<ProviderPause> pause;
  std::vector<std::pair<BreakerKey, Breaker>> breakers;  // those that are open, the widest first
  ProviderHealth health;
  std::vector<std::string> notices;        // of what needs attention although it can be used
  std::vector<driver::ApiRate> api_rates;  // of its own: of services that have not borne all calls
  std::optional<Duration> next_start;      // until it is tried again
  int max_concurrency = -1;                // ≤ 0: unlimited, or not known
  int launches = 0;                        // in progress; of its own only
  Resources limit;                         // the cloud's, for this tenant; empty while unknown
  Resources used;
  Resources reserved;                     // as of pools
  std::map<std::string_view, int> nodes;  // by state
  std::vector<PoolStatus> pools;
};

// The providers of all launchers as far as their announcements and the records say: state, fault, limit,
// pools and labels, nodes and what they use; not what only the launcher knows, such as its launches. Where
// launchers do not agree on the state of one, a fault counts first.
std::map<ProviderName, ProviderStatus> AnnouncedProviders(const store::Caches& records);

// The open breakers of the provider, the widest first.
std::vector<std::pair<BreakerKey, Breaker>> OpenBreakersOf(const store::RecordCache<Breaker>& breakers,
                                                           const ProviderName& provider);

// Whether one provider can be used, from the outcomes of attempts to use it. Logs a fault as an error when
// it is new, and for debugging when it is repeated, also with another request id; logs the recovery once.
class HealthRecord {
 public:
  // The loop outlives it.
  HealthRecord(Loop& loop, ProviderName name, log::Logger logger);

  const ProviderHealth& now() const { return now_; }

  // Both return whether operators see something new. `what` begins the log line: "Provider cloud cannot be
  // used".
  bool Failed(const std::string& what, driver::ProviderFault fault);
  bool Succeeded();

 private:
  void Log(const std::string& what, const driver::ProviderFault& fault);

  Loop& loop_;
  ProviderName name_;
  log::Logger logger_;
  ProviderHealth now_;
  std::set<std::string> logged_;  // causes, since it could last be used
};

// The running providers of this launcher. One that does not start does not affect the others and is tried
// again with growing pauses (D-30). One whose configuration changed is replaced; its predecessor finishes
// what it has begun.
class ProviderManager {
 public:
  ProviderManager(Context& context, driver::Registry& drivers);
  ~ProviderManager();  // call Stop() first

  // Notified of changes of providers, from now on.
  struct Listener {
    std::function<void(const ProviderName&)> started;
    std::function<void()> health_changed;  // a provider can be used, or not, or has another fault
    std::function<void(const ProviderName&)> capacity_changed;  // as its driver says
  };
  void Start(Listener listener) { listener_ = std::move(listener); }
  // Ends when every provider has stopped. May be called again.
  Task<> Stop();

  // Starts, in the background, the providers of the configuration that are new or changed (launcher.md 4.2).
  // A predecessor idles at once and stops when its successor has started or failed to. Providers that the
  // configuration does not name stay: Drain() and then Remove() them.
  void Configure(const driver::LoadedConfig& config);
  // Marks the provider as no longer configured, until Configure() names it again.
  void Drain(const ProviderName& name);
  // Stops the provider in the background, once it has finished what it has begun.
  void Remove(const ProviderName& name);

  // The running provider, or null; it runs also while it has a fault. Hold on to the returned pointer across
  // awaits.
  std::shared_ptr<driver::Provider> Find(const ProviderName& name) const;
  // Whether this launcher is responsible for the provider's nodes.
  bool Manages(const ProviderName& name) const { return current_.contains(name); }
  // The providers for whose nodes this launcher is responsible.
  std::vector<ProviderName> Managed() const;
  // Ends when every provider has started, or has failed to at least once.
  Task<> AwaitFirstAttempts();
  bool all_up() const;
  std::vector<std::shared_ptr<driver::Provider>> Running() const;
  // For a managed provider only.
  const ProviderHealth& HealthOf(const ProviderName& name) const { return current_.at(name)->health.now(); }
  // How the services of its cloud are called, where they have not borne all calls.
  const StatsObserver::ApiRates& ApiRatesOf(const ProviderName& name) const {
    return observer_.ApiRatesOf(name);
  }
  // The provider's state, as announced in ZooKeeper.
  ProviderReport ReportOf(const ProviderName& name) const;
  const driver::ProviderConfig& ConfigOf(const ProviderName& name) const {
    return *current_.at(name)->config;
  }

 private:
  // A provider made from one configuration, from its first start to its stop.
  struct Generation {
    Generation(Loop& loop, std::shared_ptr<const driver::ProviderConfig> provider_config, log::Logger logger)
        : config(std::move(provider_config)), health(loop, config->name, logger), starting(loop, logger) {}
    void Idle() {
      is_running = false;
      if (provider) provider->Idle();
    }

    std::shared_ptr<const driver::ProviderConfig> config;
    std::shared_ptr<driver::Provider> provider;     // null before the first start
    bool is_running = false;                        // it has started, and nothing replaced it
    std::optional<driver::ProviderFault> reported;  // by the driver, since the start began
    HealthRecord health;
    std::vector<std::string> notices;  // ProviderEnvironment::report_notices
    bool is_tried = false;
    std::optional<WallTime> draining_since;
    TaskGroup starting;
  };

  void Bring(const ProviderName& name, std::shared_ptr<const driver::ProviderConfig> config);
  Task<> KeepStarting(std::shared_ptr<Generation> generation);
  Task<> StartOnce(std::shared_ptr<Generation> generation);
  void UpdateHealth(Generation& generation);
  void Retire(std::shared_ptr<Generation> generation);
  Task<> StopGeneration(std::shared_ptr<Generation> generation);
  bool IsTried(const ProviderName& name) const;
  Task<> StopQuietly(std::shared_ptr<driver::Provider> provider);

  Context& context_;
  driver::Registry& drivers_;
  log::Logger logger_;
  StatsObserver observer_;
  process::SystemRunner runner_{context_.loop};
  driver::RecordsEnvironment records_;
  std::map<ProviderName, std::shared_ptr<Generation>> current_;
  Listener listener_;
  WaitList tried_;
  TaskGroup retiring_;
};

}  // namespace nodepool::launcher
