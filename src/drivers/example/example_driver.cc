#include "drivers/example/example_driver.h"

#include "drivers/example/example_adapter.h"
#include "drivers/example/example_config.h"

namespace nodepool::drivers {

const config::Schema& ExampleDriver::ProviderSchema() const { return ExampleSchema(); }

std::shared_ptr<const driver::ProviderConfig> ExampleDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  return LoadExampleConfig(section, config);
}

std::unique_ptr<driver::cloud::Adapter> ExampleDriver::CreateAdapter(
    const driver::cloud::AdapterEnvironment&, std::shared_ptr<const driver::ProviderConfig> config) {
  return std::make_unique<ExampleAdapter>(std::move(config));
}

}  // namespace nodepool::drivers
