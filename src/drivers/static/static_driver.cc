#include "drivers/static/static_driver.h"

#include "drivers/static/static_config.h"
#include "drivers/static/static_provider.h"
#include "net/resolve.h"
#include "net/ssh/host_key_scan.h"

namespace nodepool::drivers {

namespace {

HostContact NetworkContact(const driver::ProviderEnvironment& environment) {
  auto scanner = std::make_shared<net::HostKeyScanner>(environment.loop, environment.blocking_pool);
  auto scan = [scanner](std::string host, int port, bool wants_keys, SteadyTime deadline) {
    return scanner->Scan(std::move(host), port, wants_keys, deadline);
  };
  auto resolve = [](std::string name) { return net::Resolve(std::move(name)); };
  return {scan, resolve};
}

}  // namespace

StaticDriver::StaticDriver(std::optional<HostContact> contact) : contact_(std::move(contact)) {}

const config::Schema& StaticDriver::ProviderSchema() const { return StaticSchema(); }

std::shared_ptr<const driver::ProviderConfig> StaticDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  return LoadStaticConfig(section, config);
}

std::unique_ptr<driver::Provider> StaticDriver::CreateProvider(
    driver::ProviderEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) {
  HostContact contact = contact_ ? *contact_ : NetworkContact(environment);
  auto static_config = std::dynamic_pointer_cast<const StaticConfig>(config);
  return std::make_unique<StaticProvider>(std::move(environment), std::move(static_config),
                                          std::move(contact));
}

}  // namespace nodepool::drivers
