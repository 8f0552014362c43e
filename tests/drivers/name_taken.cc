#include "base/error.h"
#include "driver/driver.h"
#include "driver/plugin.h"

// Calls itself as a driver that is part of the programs.
class SecondFake : public nodepool::driver::Driver {
 public:
  std::string_view name() const override { return "fake"; }
  const nodepool::config::Schema& ProviderSchema() const override { return schema_; }
  std::shared_ptr<const nodepool::driver::ProviderConfig> LoadProviderConfig(
      const nodepool::config::ProviderSection&, nodepool::config::Config&) override {
    return nullptr;
  }
  std::unique_ptr<nodepool::driver::Provider> CreateProvider(
      nodepool::driver::ProviderEnvironment,
      std::shared_ptr<const nodepool::driver::ProviderConfig>) override {
    return nullptr;
  }

 private:
  nodepool::config::Schema schema_ = nodepool::config::Schema::Any();
};

NODEPOOL_DRIVER(SecondFake)
