#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "async/task_group.h"
#include "driver/driver.h"
#include "driver/loading/load_config.h"
#include "driver/provider.h"
#include "driver/records_environment.h"
#include "launcher/context.h"
#include "launcher/provider_health.h"
#include "launcher/stats/stats_observer.h"
#include "launcher/status.h"
#include "process/system_runner.h"

namespace nodepool::launcher {

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
    std::function<void()> capacity_changed;
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
