#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "async/task_group.h"
#include "driver/driver.h"
#include "driver/loading/load_config.h"
#include "launcher/context.h"
#include "launcher/stats/stats_observer.h"
#include "launcher/status.h"

namespace nodepool::launcher {

// The running providers of this launcher. One that does not start harms nobody
// else and is tried again with growing pauses (D-30). One whose configuration
// changed is replaced; its predecessor finishes what it has begun.
class ProviderManager {
 public:
  ProviderManager(Context& context, driver::Registry& drivers);
  ~ProviderManager();  // call Stop() first

  // What happens to providers is told to these, from now on.
  struct Listener {
    std::function<void(const ProviderName&)> started;
    std::function<void()> failed;  // to start
    std::function<void()> capacity_changed;
  };
  void Start(Listener listener) { listener_ = std::move(listener); }
  // Ends when every provider has stopped. May be called again.
  Task<> Stop();

  // Brings up, in the background, the providers of the configuration that are new or
  // changed (launcher.md 4.2). A predecessor idles at once and stops when its successor has
  // started or failed to. Those that the configuration does not name stay, to be drained
  // and then removed.
  void Configure(const driver::LoadedConfig& config);
  // The provider is not configured any more, for as long as Configure() does not name it again.
  void Drain(const ProviderName& name);
  // Lets the provider finish what it has begun, and stop.
  void Remove(const ProviderName& name);

  // The running provider, or null. Who awaits while using it keeps it by this.
  std::shared_ptr<driver::Provider> Find(const ProviderName& name) const;
  // Whether this launcher is responsible for the provider's nodes.
  bool Manages(const ProviderName& name) const { return current_.contains(name); }
  // All that it is responsible for.
  std::vector<ProviderName> Managed() const;
  // Ends when every provider has started or failed to at least once.
  Task<> WaitTried();
  // Whether every provider is up.
  bool all_started() const;
  std::vector<std::shared_ptr<driver::Provider>> Running() const;
  // Of a provider that it is responsible for.
  const ProviderHealth& HealthOf(const ProviderName& name) const { return current_.at(name)->health; }
  // How it is, as others are told.
  ProviderReport ReportOf(const ProviderName& name) const;
  const driver::ProviderConfig& ConfigOf(const ProviderName& name) const {
    return *current_.at(name)->config;
  }

 private:
  // A provider as made from one configuration, from its first start to its stop.
  struct Generation {
    Generation(Loop& loop, log::Logger logger) : starting(loop, std::move(logger)) {}
    void Idle() {
      health = {};
      if (provider) provider->Idle();
    }

    std::shared_ptr<const driver::ProviderConfig> config;
    std::shared_ptr<driver::Provider> provider;  // null before the first start
    ProviderHealth health;
    bool is_tried = false;
    std::optional<WallTime> draining_since;
    TaskGroup starting;
  };

  void Bring(const ProviderName& name, std::shared_ptr<const driver::ProviderConfig> config);
  Task<> KeepStarting(std::shared_ptr<Generation> generation);
  Task<> StartOnce(std::shared_ptr<Generation> generation);
  void Retire(std::shared_ptr<Generation> generation);
  Task<> StopGeneration(std::shared_ptr<Generation> generation);
  bool IsTried(const ProviderName& name) const;
  Task<> StopQuietly(std::shared_ptr<driver::Provider> provider);

  Context& context_;
  driver::Registry& drivers_;
  log::Logger logger_;
  StatsObserver observer_;
  std::map<ProviderName, std::shared_ptr<Generation>> current_;
  Listener listener_;
  WaitList tried_;
  TaskGroup retiring_;
};

}  // namespace nodepool::launcher
