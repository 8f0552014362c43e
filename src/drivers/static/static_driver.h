#pragma once

#include <memory>
#include <optional>

#include "driver/driver.h"
#include "drivers/static/static_host.h"

namespace nodepool::drivers {

// Driver `static`: machines that exist already. Their records are registered by the
// provider, not launched for requests (drivers.md 7).
class StaticDriver : public driver::Driver {
 public:
  // By default hosts are reached over the network.
  explicit StaticDriver(std::optional<HostContact> contact = std::nullopt);

  std::string_view name() const override { return "static"; }
  const config::Schema& ProviderSchema() const override;
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override;
  std::unique_ptr<driver::Provider> CreateProvider(
      driver::ProviderEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) override;
  std::unique_ptr<driver::OperatorTools> CreateOperatorTools(
      driver::ToolsEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) override;

 private:
  std::optional<HostContact> contact_;
};

}  // namespace nodepool::drivers
