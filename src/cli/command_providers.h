#pragma once

#include <memory>

#include "async/blocking_pool.h"
#include "driver/driver.h"
#include "driver/provider.h"
#include "driver/records_environment.h"
#include "store/store.h"

namespace nodepool::cli {

// Makes providers that are only asked, not started: their caches of records are empty. Everything that it is
// given outlives it, and it outlives the providers.
class CommandProviders {
 public:
  CommandProviders(store::Store& store, Loop& loop, Random& random, zk::Client& client, BlockingPool& pool,
                   const driver::Registry& drivers);

  // Stop the provider before it is destroyed.
  std::unique_ptr<driver::Provider> Make(std::shared_ptr<const driver::ProviderConfig> config);

 private:
  Loop& loop_;
  Random& random_;
  BlockingPool& pool_;
  const driver::Registry& drivers_;
  store::NodeCache nodes_;
  store::ImageCache images_;
  driver::RecordsEnvironment records_;
};

}  // namespace nodepool::cli
