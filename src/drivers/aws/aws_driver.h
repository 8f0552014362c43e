#pragma once

#include <memory>
#include <optional>

#include "driver/cloud/cloud_driver.h"
#include "drivers/aws/credentials/profiles.h"

namespace nodepool::drivers {

// Driver `aws`: instances of EC2. The files of the account's user are read when a provider starts, and again
// whenever its credentials are fetched.
class AwsDriver : public driver::cloud::CloudDriver {
 public:
  // `variables` replaces the environment of the process.
  explicit AwsDriver(std::optional<aws::Variables> variables = std::nullopt);

  std::string_view name() const override { return "aws"; }
  const config::Schema& ProviderSchema() const override;
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override;
  std::unique_ptr<driver::cloud::Adapter> CreateAdapter(
      const driver::cloud::AdapterEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override;

 private:
  std::optional<aws::Variables> variables_;
};

}  // namespace nodepool::drivers
