#pragma once

#include "driver/cloud/cloud_driver.h"

namespace nodepool::drivers {

// Driver `example`: machines that exist in this process's memory only (drivers.md 9).
class ExampleDriver : public driver::cloud::CloudDriver {
 public:
  std::string_view name() const override { return "example"; }
  const config::Schema& ProviderSchema() const override;
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override;
  std::unique_ptr<driver::cloud::Adapter> CreateAdapter(
      const driver::cloud::AdapterEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override;
};

}  // namespace nodepool::drivers
