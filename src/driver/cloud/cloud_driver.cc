#include "driver/cloud/cloud_driver.h"

#include "driver/cloud/cloud_calls.h"
#include "net/ssh/host_key_scan.h"

namespace nodepool::driver::cloud {

namespace {

MakeAdapter AdapterOf(CloudDriver& driver, std::shared_ptr<const ProviderConfig> config) {
  return [&driver, config](const AdapterEnvironment& environment) {
    std::unique_ptr<Adapter> adapter = driver.CreateAdapter(environment, config);
    if (!adapter) throw Error(Verdict::kFail, "driver " + config->driver + " makes no adapter");
    return adapter;
  };
}

}  // namespace

std::unique_ptr<Provider> CloudDriver::CreateProvider(ProviderEnvironment environment,
                                                      std::shared_ptr<const ProviderConfig> config) {
  HostKeyScan scan = reports_host_keys() ? nullptr : NetworkScan(environment);
  return MakeCloudProvider(std::move(environment), config, AdapterOf(*this, config), std::move(scan));
}

std::unique_ptr<ImageStore> CloudDriver::CreateImageStore(DriverEnvironment environment,
                                                          std::shared_ptr<const ProviderConfig> config) {
  return std::make_unique<CloudImages>(environment, config, AdapterOf(*this, config));
}

std::unique_ptr<OperatorTools> CloudDriver::CreateOperatorTools(
    ToolsEnvironment environment, std::shared_ptr<const ProviderConfig> config) {
  return std::make_unique<CloudTools>(environment, config, AdapterOf(*this, config));
}

HostKeyScan NetworkScan(const DriverEnvironment& environment) {
  auto scanner = std::make_shared<net::HostKeyScanner>(environment.loop, environment.blocking_pool);
  return [scanner](std::string host, int port, bool wants_keys, SteadyTime deadline) {
    return scanner->Scan(std::move(host), port, wants_keys, deadline);
  };
}

}  // namespace nodepool::driver::cloud
