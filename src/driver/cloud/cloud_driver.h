#pragma once

#include <memory>

#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_provider.h"
#include "driver/cloud/framework.h"
#include "driver/driver.h"

namespace nodepool::driver::cloud {

// A driver that consists of an adapter; drivers of clouds derive from it. The framework implements what
// launchers (cloud_provider.h), builders and commands ask of a driver with it.
class CloudDriver : public driver::Driver {
 public:
  // Creates the adapter of one provider; `config` is LoadProviderConfig's result, and everything in
  // `environment` outlives the adapter. Called on the loop: it must not block. An Error means that the
  // provider cannot be used now.
  virtual std::unique_ptr<Adapter> CreateAdapter(const AdapterEnvironment& environment,
                                                 std::shared_ptr<const ProviderConfig> config) = 0;

  // Whether adapters report the host keys of all machines. If so, machines are never contacted; otherwise
  // keys are read over the network.
  virtual bool reports_host_keys() const { return false; }

  std::unique_ptr<Provider> CreateProvider(ProviderEnvironment environment,
                                           std::shared_ptr<const ProviderConfig> config) override;
  std::unique_ptr<ImageStore> CreateImageStore(DriverEnvironment environment,
                                               std::shared_ptr<const ProviderConfig> config) override;
  std::unique_ptr<OperatorTools> CreateOperatorTools(ToolsEnvironment environment,
                                                     std::shared_ptr<const ProviderConfig> config) override;
};

// Reads host keys over the network.
HostKeyScan NetworkScan(const DriverEnvironment& environment);

}  // namespace nodepool::driver::cloud
