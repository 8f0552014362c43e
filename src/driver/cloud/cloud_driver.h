#pragma once

#include <memory>

#include "driver/cloud/adapter.h"
#include "driver/driver.h"

namespace nodepool::driver::cloud {

// A driver that consists of an adapter; drivers of clouds derive from it. The framework implements the rest
// of the provider (cloud_provider.h); host keys are read over the network.
class CloudDriver : public driver::Driver {
 public:
  // Creates the adapter of one provider; `config` is LoadProviderConfig's result, and everything in
  // `environment` outlives the adapter. Called on the loop: it must not block. An Error means that the
  // provider cannot be used now.
  virtual std::unique_ptr<Adapter> CreateAdapter(const ProviderEnvironment& environment,
                                                 std::shared_ptr<const ProviderConfig> config) = 0;

  std::unique_ptr<Provider> CreateProvider(ProviderEnvironment environment,
                                           std::shared_ptr<const ProviderConfig> config) override;
};

}  // namespace nodepool::driver::cloud
