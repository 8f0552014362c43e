#include "drivers/openstack/openstack_driver.h"

#include "driver/cloud/cloud_provider.h"
#include "drivers/openstack/openstack_adapter.h"
#include "drivers/openstack/provider_config.h"
#include "net/curl_client.h"
#include "net/host_key_scan.h"

namespace nodepool::drivers {

OpenstackDriver::OpenstackDriver(std::optional<openstack::Variables> variables)
    : variables_(std::move(variables)) {}

const config::Schema& OpenstackDriver::ProviderSchema() const { return OpenstackSchema(); }

std::shared_ptr<const driver::ProviderConfig> OpenstackDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  if (!files_) files_ = openstack::ReadCloudFiles(variables_ ? *variables_ : openstack::ProcessVariables());
  return openstack::LoadOpenstackConfig(section, config, *files_);
}

std::unique_ptr<driver::Provider> OpenstackDriver::CreateProvider(
    driver::ProviderEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) {
  auto openstack_config = std::dynamic_pointer_cast<const openstack::OpenstackProviderConfig>(config);
  auto client =
      std::make_unique<net::CurlClient>(environment.loop, environment.blocking_pool, "nodepool/0.1");
  auto adapter =
      std::make_unique<openstack::OpenstackAdapter>(environment, openstack_config, std::move(client));
  auto scanner = std::make_shared<net::HostKeyScanner>(environment.loop, environment.blocking_pool);
  auto scan = [scanner](std::string host, int port, bool wants_keys, SteadyTime deadline) {
    return scanner->Scan(std::move(host), port, wants_keys, deadline);
  };
  return driver::cloud::MakeCloudProvider(std::move(environment), std::move(config), std::move(adapter),
                                          std::move(scan));
}

}  // namespace nodepool::drivers
