#pragma once

#include <map>
#include <memory>
#include <vector>

#include "async/task_group.h"
#include "builder/context.h"
#include "driver/driver.h"
#include "driver/provider.h"
#include "driver/records_environment.h"
#include "store/cache/node_cache.h"

namespace nodepool::builder {

// One object for each provider that manages images. They are not started: the builder launches nothing, so it
// needs no quotas and no search for leaks. A provider whose configuration changed is replaced; its
// predecessor finishes the uploads that it has begun.
class ImageProviders {
 public:
  ImageProviders(Context& context, BlockingPool& blocking_pool, driver::Registry& drivers);
  ~ImageProviders();  // call Stop() first

  // Creates the configured providers; stops the others.
  void Configure(const driver::LoadedConfig& config);
  Task<> Stop();

  // Null: it is not configured, or cannot be created. Hold on to the returned pointer across awaits.
  std::shared_ptr<driver::Provider> Find(const ProviderName& name) const;

 private:
  void Retire(std::shared_ptr<driver::Provider> provider);
  Task<> StopQuietly(std::shared_ptr<driver::Provider> provider);

  Context& context_;
  BlockingPool& blocking_pool_;
  driver::Registry& drivers_;
  log::Logger logger_;
  store::NodeCache nodes_;  // a provider needs one; it stays empty
  driver::RecordsEnvironment records_;
  std::map<ProviderName, std::shared_ptr<driver::Provider>> providers_;
  TaskGroup retiring_;
};

}  // namespace nodepool::builder
