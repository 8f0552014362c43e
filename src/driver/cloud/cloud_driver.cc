#include "driver/cloud/cloud_driver.h"

#include "driver/cloud/cloud_provider.h"
#include "net/ssh/host_key_scan.h"

namespace nodepool::driver::cloud {

std::unique_ptr<Provider> CloudDriver::CreateProvider(ProviderEnvironment environment,
                                                      std::shared_ptr<const ProviderConfig> config) {
  std::unique_ptr<Adapter> adapter = CreateAdapter(environment, config);
  if (!adapter) throw Error(Verdict::kFail, "driver " + config->driver + " makes no adapter");
  auto scanner = std::make_shared<net::HostKeyScanner>(environment.loop, environment.blocking_pool);
  auto scan = [scanner](std::string host, int port, bool wants_keys, SteadyTime deadline) {
    return scanner->Scan(std::move(host), port, wants_keys, deadline);
  };
  return MakeCloudProvider(std::move(environment), std::move(config), std::move(adapter), std::move(scan));
}

}  // namespace nodepool::driver::cloud
