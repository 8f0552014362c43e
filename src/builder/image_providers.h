#pragma once

#include <map>
#include <memory>
#include <vector>

#include "async/task_group.h"
#include "builder/context.h"
#include "driver/driver.h"

namespace nodepool::builder {

// The image stores of the providers that manage images. One whose configuration changed is replaced; its
// predecessor finishes the uploads that it has begun.
class ImageProviders {
 public:
  ImageProviders(Context& context, BlockingPool& blocking_pool, driver::Registry& drivers);
  ~ImageProviders();  // call Stop() first

  // Creates the configured providers; stops the others.
  void Configure(const driver::LoadedConfig& config);
  Task<> Stop();

  // Null: it is not configured, or cannot be created. Hold on to the returned pointer across awaits.
  std::shared_ptr<driver::ImageStore> Find(const ProviderName& name) const;

 private:
  void Retire(std::shared_ptr<driver::ImageStore> store);
  Task<> StopQuietly(std::shared_ptr<driver::ImageStore> store);

  Context& context_;
  BlockingPool& blocking_pool_;
  driver::Registry& drivers_;
  log::Logger logger_;
  std::map<ProviderName, std::shared_ptr<driver::ImageStore>> stores_;
  TaskGroup retiring_;
};

}  // namespace nodepool::builder
