#pragma once

#include <memory>

#include "driver/cloud/adapter.h"
#include "driver/cloud/own_types.h"

namespace nodepool::driver::cloud {

// An adapter of a driver with its own configuration types: `Config`, `Label` and `Pool` are what its
// LoadProviderConfig creates.
template <class Config, class Label = LabelConfig, class Pool = PoolConfig>
class CloudAdapter : public Adapter {
 protected:
  // Error(kFail): `config` was made by another driver.
  explicit CloudAdapter(const std::shared_ptr<const ProviderConfig>& config) : config_(As<Config>(config)) {}

  // A label or pool of this provider as the driver's own type.
  static const Label& Own(const LabelConfig& label) { return As<Label>(label); }
  static const Pool& Own(const PoolConfig& pool) { return As<Pool>(pool); }

  const std::shared_ptr<const Config> config_;  // never null
};

}  // namespace nodepool::driver::cloud
