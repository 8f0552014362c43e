#pragma once

#include <map>
#include <memory>
#include <vector>

#include "async/task_group.h"
#include "builder/context.h"
#include "driver/driver.h"
#include "store/cache/node_cache.h"

namespace nodepool::builder {

// One object for each provider that manages images. They are not started: nothing is
// launched here, so nobody has to know quotas or look for leaks. One whose configuration
// changed is replaced; its predecessor finishes the uploads that it has begun.
class ImageProviders {
 public:
  ImageProviders(Context& context, BlockingPool& blocking_pool, driver::Registry& drivers);
  ~ImageProviders();  // call Stop() first

  // Makes what the configuration names; stops what it does not.
  void Configure(const driver::LoadedConfig& config);
  Task<> Stop();

  // Null when it is not configured, or cannot be made. Who awaits while using it keeps
  // it by this.
  std::shared_ptr<driver::Provider> Find(const ProviderName& name) const;

 private:
  void Retire(std::shared_ptr<driver::Provider> provider);
  Task<> StopQuietly(std::shared_ptr<driver::Provider> provider);

  Context& context_;
  BlockingPool& blocking_pool_;
  driver::Registry& drivers_;
  log::Logger logger_;
  store::NodeCache nodes_;  // a provider has one; nobody fills this
  std::map<ProviderName, std::shared_ptr<driver::Provider>> providers_;
  TaskGroup retiring_;
};

}  // namespace nodepool::builder
