#pragma once

#include "driver/cloud/cloud_driver.h"

namespace nodepool::drivers::libvirt {

// Driver `libvirt`: machines on one's own hosts (driver-libvirt.md).
class Driver : public driver::cloud::CloudDriver {
 public:
  std::string_view name() const override { return "libvirt"; }
  const config::Schema& ProviderSchema() const override;
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override;
  std::unique_ptr<driver::cloud::Adapter> CreateAdapter(
      const driver::ProviderEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override;
};

}  // namespace nodepool::drivers::libvirt
