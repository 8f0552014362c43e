#pragma once

#include <memory>
#include <optional>

#include "driver/cloud/cloud_driver.h"
#include "drivers/openstack/config/cloud_files.h"

namespace nodepool::drivers {

// Driver `openstack`. clouds.yaml and its like are read at each load of the
// configuration (driver-openstack.md 3.1).
class OpenstackDriver : public driver::cloud::CloudDriver {
 public:
  // `variables` replaces the environment of the process.
  explicit OpenstackDriver(std::optional<openstack::Variables> variables = std::nullopt);

  std::string_view name() const override { return "openstack"; }
  const config::Schema& ProviderSchema() const override;
  void Reset() override { files_.reset(); }
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override;
  std::unique_ptr<driver::cloud::Adapter> CreateAdapter(
      const driver::ProviderEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override;

 private:
  std::optional<openstack::Variables> variables_;
  std::optional<openstack::CloudFiles> files_;  // of the load under way
};

}  // namespace nodepool::drivers
