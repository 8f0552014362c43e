#pragma once

#include <memory>
#include <optional>

#include "driver/cloud/cloud_driver.h"
#include "drivers/gce/api/compute.h"

namespace nodepool::drivers {

// Driver `gce`: instances of Google Compute Engine. Files with credentials are read whenever a token is
// fetched.
class GceDriver : public driver::cloud::CloudDriver {
 public:
  // `variables` replaces the environment of the process.
  explicit GceDriver(std::optional<gce::Variables> variables = std::nullopt);

  std::string_view name() const override { return "gce"; }
  const config::Schema& ProviderSchema() const override;
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override;
  std::unique_ptr<driver::cloud::Adapter> CreateAdapter(
      const driver::cloud::AdapterEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override;

 private:
  std::optional<gce::Variables> variables_;
};

}  // namespace nodepool::drivers
