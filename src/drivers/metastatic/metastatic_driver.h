#pragma once

#include <memory>

#include "driver/driver.h"

namespace nodepool::drivers {

// Driver `metastatic`: nodes that are slots of other providers' nodes (drivers.md 8).
class MetastaticDriver : public driver::Driver {
 public:
  std::string_view name() const override { return "metastatic"; }
  const config::Schema& ProviderSchema() const override;
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override;
  std::unique_ptr<driver::Provider> CreateProvider(
      driver::ProviderEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) override;
  std::unique_ptr<driver::OperatorTools> CreateOperatorTools(
      driver::ToolsEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) override;
};

}  // namespace nodepool::drivers
