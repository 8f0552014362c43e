#include "drivers/openstack/openstack_driver.h"

#include "drivers/openstack/config/provider_config.h"
#include "drivers/openstack/openstack_adapter.h"
#include "net/http/curl_client.h"

namespace nodepool::drivers {

OpenstackDriver::OpenstackDriver(std::optional<openstack::Variables> variables)
    : variables_(std::move(variables)) {}

const config::Schema& OpenstackDriver::ProviderSchema() const { return OpenstackSchema(); }

std::shared_ptr<const driver::ProviderConfig> OpenstackDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  if (!files_) files_ = openstack::ReadCloudFiles(variables_ ? *variables_ : openstack::ProcessVariables());
  return openstack::LoadOpenstackConfig(section, config, *files_);
}

std::unique_ptr<driver::cloud::Adapter> OpenstackDriver::CreateAdapter(
    const driver::ProviderEnvironment& environment, std::shared_ptr<const driver::ProviderConfig> config) {
  auto client =
      std::make_unique<net::CurlClient>(environment.loop, environment.blocking_pool, "nodepool/0.1");
  return std::make_unique<openstack::OpenstackAdapter>(
      environment, std::dynamic_pointer_cast<const openstack::OpenstackProviderConfig>(config),
      std::move(client));
}

}  // namespace nodepool::drivers
