#include "drivers/fake/fake_driver.h"

#include "driver/statemachine/provider.h"
#include "drivers/fake/fake_adapter.h"
#include "drivers/fake/fake_config.h"

namespace nodepool::drivers {

FakeDriver::FakeDriver(std::shared_ptr<FakeClouds> clouds) : clouds_(std::move(clouds)) {}

const config::Schema& FakeDriver::ProviderSchema() const { return FakeSchema(); }

std::shared_ptr<const driver::ProviderConfig> FakeDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  return LoadFakeConfig(section, config);
}

std::unique_ptr<driver::statemachine::Adapter> FakeDriver::CreateAdapter(
    const driver::ProviderEnvironment& environment, std::shared_ptr<const driver::ProviderConfig> config) {
  auto fake_config = std::dynamic_pointer_cast<const FakeConfig>(config);
  FakeCloud& cloud =
      clouds_->Of(fake_config->name, environment.loop, environment.random, fake_config->simulation);
  return std::make_unique<FakeAdapter>(cloud, fake_config);
}

std::unique_ptr<driver::Provider> FakeDriver::CreateProvider(
    driver::ProviderEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) {
  auto adapter = CreateAdapter(environment, config);
  return driver::statemachine::MakeProvider(std::move(environment), std::move(config), std::move(adapter),
                                            nullptr);
}

}  // namespace nodepool::drivers
