#include "drivers/fake/fake_driver.h"

#include "driver/cloud/cloud_provider.h"
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
    const driver::ProviderEnvironment& environment, std::shared_ptr<const driver::ProviderConfig> config) {
  auto fake_config = std::dynamic_pointer_cast<const FakeConfig>(config);
  FakeCloud& cloud =
      clouds_->Of(fake_config->name, environment.loop, environment.random, fake_config->simulation);
  std::shared_ptr<FakeControl> control;
  if (!environment.is_for_one_command) control = ControlOf(*fake_config, cloud, environment.loop);
  return std::make_unique<FakeAdapter>(cloud, fake_config, std::move(control));
}

// One port for all generations of a provider. Another program with the same
// configuration may have it already.
std::shared_ptr<FakeControl> FakeDriver::ControlOf(const FakeConfig& config, FakeCloud& cloud, Loop& loop) {
  std::optional<int> port = config.simulation.control_port;
  if (!port) return nullptr;
  Open& open = controls_[config.name];
  std::shared_ptr<FakeControl> control = open.port == *port ? open.control.lock() : nullptr;
  if (control) return control;
  log::Logger logger("nodepool.driver.fake");
  try {
    control = std::make_shared<FakeControl>(loop, cloud, *port);
    logger.Info("The simulated cloud of provider {} is controlled at port {}", config.name, control->port());
  } catch (const Error&) {
    logger.Info("The simulated cloud of provider {} cannot be controlled here: control-port {} is taken",
                config.name, *port);
  }
  open = {*port, control};
  return control;
}

std::unique_ptr<driver::Provider> FakeDriver::CreateProvider(
    driver::ProviderEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) {
  auto adapter = CreateAdapter(environment, config);
  return driver::cloud::MakeCloudProvider(std::move(environment), std::move(config), std::move(adapter),
                                          nullptr);
}

}  // namespace nodepool::drivers
