#include "drivers/metastatic/metastatic_driver.h"

#include "drivers/metastatic/metastatic_adapter.h"
#include "drivers/metastatic/metastatic_config.h"

namespace nodepool::drivers {

const config::Schema& MetastaticDriver::ProviderSchema() const { return MetastaticSchema(); }

std::shared_ptr<const driver::ProviderConfig> MetastaticDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  return LoadMetastaticConfig(section, config);
}

std::unique_ptr<driver::cloud::Adapter> MetastaticDriver::CreateAdapter(
    const driver::ProviderEnvironment& environment, std::shared_ptr<const driver::ProviderConfig> config) {
  return std::make_unique<MetastaticAdapter>(environment, std::move(config));
}

}  // namespace nodepool::drivers
