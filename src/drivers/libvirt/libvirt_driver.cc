#include "drivers/libvirt/libvirt_driver.h"

#include "drivers/libvirt/host/libvirt_hypervisor.h"
#include "drivers/libvirt/libvirt_adapter.h"
#include "drivers/libvirt_schema.h"

namespace nodepool::drivers::libvirt {

const config::Schema& Driver::ProviderSchema() const { return LibvirtSchema(); }

std::shared_ptr<const driver::ProviderConfig> Driver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  return LoadLibvirtConfig(section, config);
}

std::unique_ptr<driver::cloud::Adapter> Driver::CreateAdapter(
    const driver::ProviderEnvironment& environment, std::shared_ptr<const driver::ProviderConfig> config) {
  Duration limit = dynamic_cast<const LibvirtConfig&>(*config).call_timeout;
  auto make = [&environment, limit](const HostConfig& host) -> std::unique_ptr<Hypervisor> {
    return std::make_unique<LibvirtHypervisor>(environment.loop, host, limit);
  };
  return std::make_unique<LibvirtAdapter>(environment, std::move(config), make);
}

}  // namespace nodepool::drivers::libvirt
