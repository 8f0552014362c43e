#pragma once

#include <memory>
#include <utility>

#include "driver/cloud/adapter.h"

namespace nodepool::driver::cloud {

// An adapter of a driver with its own configuration types: `Config`, `Label` and `Pool` are what its
// LoadProviderConfig creates.
template <class Config, class Label = LabelConfig, class Pool = PoolConfig>
class CloudAdapter : public Adapter {
 protected:
  // Error(kFail): `config` was made by another driver.
  explicit CloudAdapter(std::shared_ptr<const ProviderConfig> config)
      : config_(std::dynamic_pointer_cast<const Config>(std::move(config))) {
    if (!config_) throw Error(Verdict::kFail, "the provider's configuration was made by another driver");
  }

  // Casts a label or pool of this provider to the driver's own type.
  static const Label& Own(const LabelConfig& label) { return dynamic_cast<const Label&>(label); }
  static const Pool& Own(const PoolConfig& pool) { return dynamic_cast<const Pool&>(pool); }

  const std::shared_ptr<const Config> config_;  // never null
};

}  // namespace nodepool::driver::cloud
