#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "async/task_group.h"
#include "driver/driver.h"
#include "driver/load_config.h"
#include "launcher/context.h"

namespace nodepool::launcher {

// The running providers of this launcher. One that does not start harms nobody
// else and is tried again with growing pauses (D-30).
class ProviderManager {
 public:
  ProviderManager(Context& context, driver::Registry& drivers);
  ~ProviderManager();  // call Stop() first

  // Starts every provider of the configuration in the background. `changed` is
  // called when one came up or its capacity changed.
  void Start(const driver::LoadedConfig& config, std::function<void(const ProviderName&)> changed);
  // Ends when every provider has stopped.
  Task<> Stop();

  // The running provider, or null.
  driver::Provider* Find(const ProviderName& name) const;
  bool IsConfigured(const ProviderName& name) const { return entries_.contains(name); }
  // Ends when every provider has started or failed to at least once.
  Task<> WaitTried();
  // Whether every configured provider is up.
  bool all_started() const;
  std::vector<driver::Provider*> Running() const;

 private:
  struct Entry {
    std::shared_ptr<const driver::ProviderConfig> config;
    std::unique_ptr<driver::Provider> provider;
    bool is_started = false;
    bool is_tried = false;
  };

  Task<> Bring(ProviderName name);
  Task<> StopQuietly(ProviderName name);

  Context& context_;
  driver::Registry& drivers_;
  log::Logger logger_;
  std::map<ProviderName, Entry> entries_;
  std::function<void(const ProviderName&)> changed_;
  WaitList tried_;
  TaskGroup starting_;
};

}  // namespace nodepool::launcher
