#include <nodepool/driver/cloud/cloud_driver.h>
#include <nodepool/driver/plugin.h>

#include "bubble_adapter.h"
#include "bubble_config.h"

namespace bubble {

class Driver : public cloud::CloudDriver {
 public:
  std::string_view name() const override { return "bubble"; }
  const nodepool::config::Schema& ProviderSchema() const override { return bubble::ProviderSchema(); }
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(
      const nodepool::config::ProviderSection& section, nodepool::config::Config& config) override {
    return ReadConfig(section, config);
  }
  std::unique_ptr<cloud::Adapter> CreateAdapter(
      const driver::cloud::AdapterEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override {
    return std::make_unique<Adapter>(environment.blocking_pool, std::move(config));
  }
};

}  // namespace bubble

NODEPOOL_DRIVER(bubble::Driver)
