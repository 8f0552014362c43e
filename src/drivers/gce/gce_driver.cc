#include "drivers/gce/gce_driver.h"

#include "base/version.h"
#include "drivers/gce/config/gce_settings.h"
#include "drivers/gce/gce_adapter.h"
#include "net/http/curl_client.h"
#include "process/command.h"

namespace nodepool::drivers {

GceDriver::GceDriver(std::optional<gce::Variables> variables) : variables_(std::move(variables)) {}

const config::Schema& GceDriver::ProviderSchema() const { return gce::GceSchema(); }

std::shared_ptr<const driver::ProviderConfig> GceDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  return gce::LoadGceConfig(section, config);
}

std::unique_ptr<driver::cloud::Adapter> GceDriver::CreateAdapter(
    const driver::cloud::AdapterEnvironment& environment,
    std::shared_ptr<const driver::ProviderConfig> config) {
  auto settings = std::dynamic_pointer_cast<const gce::GceConfig>(config);
  gce::Variables variables = variables_ ? *variables_ : process::OwnEnvironment();
  gce::Endpoints endpoints = gce::EndpointsOf(variables);
  auto client = std::make_unique<net::CurlClient>(environment.loop, environment.blocking_pool,
                                                  "nodepool/" + std::string(Version()));
  return std::make_unique<gce::GceAdapter>(environment, std::move(settings), std::move(endpoints),
                                           std::move(variables), std::move(client));
}

}  // namespace nodepool::drivers
