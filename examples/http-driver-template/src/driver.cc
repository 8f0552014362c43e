#include <nodepool/driver/cloud/cloud_driver.h>
#include <nodepool/driver/plugin.h>

#include "adapter.h"
#include "config.h"

namespace lantern_driver {

class Driver : public cloud::CloudDriver {
 public:
  std::string_view name() const override { return "lantern"; }
  const nodepool::config::Schema& ProviderSchema() const override { return lantern_driver::ProviderSchema(); }
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(
      const nodepool::config::ProviderSection& section, nodepool::config::Config& config) override {
    return ReadConfig(section, config);
  }
  std::unique_ptr<cloud::Adapter> CreateAdapter(
      const driver::cloud::AdapterEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override {
    return std::make_unique<Adapter>(environment, std::move(config));
  }
};

}  // namespace lantern_driver

NODEPOOL_DRIVER(lantern_driver::Driver)
