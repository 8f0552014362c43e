#include "drivers/fake/fake_driver.h"

#include "driver/cloud/own_types.h"
#include "drivers/fake/fake_adapter.h"
#include "drivers/fake/fake_config.h"

namespace nodepool::drivers {

FakeDriver::FakeDriver(std::shared_ptr<FakeClouds> clouds) : clouds_(std::move(clouds)) {}

const config::Schema& FakeDriver::ProviderSchema() const { return FakeSchema(); }

std::shared_ptr<const driver::ProviderConfig> FakeDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  return LoadFakeConfig(section, config);
}

std::unique_ptr<driver::cloud::Adapter> FakeDriver::CreateAdapter(
    const driver::cloud::AdapterEnvironment& environment,
    std::shared_ptr<const driver::ProviderConfig> config) {
  const FakeSimulation& simulation = driver::cloud::As<FakeConfig>(*config).simulation;
  FakeCloud& cloud = clouds_->Of(config->name, environment.loop, environment.random, simulation);
  FakeAdapter::OpenControl open = [] { return nullptr; };
  if (simulation.control_port) {
    open = [this, &cloud, &loop = environment.loop, provider = config->name,
            port = *simulation.control_port] { return ControlOf(provider, port, cloud, loop); };
  }
  return std::make_unique<FakeAdapter>(cloud, std::move(config), std::move(open));
}

// One port for all generations of a provider. Another process with the same configuration may already use it.
std::shared_ptr<FakeControl> FakeDriver::ControlOf(const ProviderName& provider, int port, FakeCloud& cloud,
                                                   Loop& loop) {
  Open& open = controls_[provider];
  std::shared_ptr<FakeControl> control = open.port == port ? open.control.lock() : nullptr;
  if (control) return control;
  log::Logger logger("nodepool.driver.fake");
  try {
    control = std::make_shared<FakeControl>(loop, cloud, port);
    logger.Info("The simulated cloud of provider {} is controlled at port {}", provider, control->port());
  } catch (const Error&) {
    logger.Info("The simulated cloud of provider {} cannot be controlled here: control-port {} is taken",
                provider, port);
  }
  open = {port, control};
  return control;
}

}  // namespace nodepool::drivers
