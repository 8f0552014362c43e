#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "driver/provider_config.h"

// The settings of a provider as the types that its driver derives (LoadProviderConfig).
namespace nodepool::driver::cloud {

// A provider, pool, label or disk image as the type that its driver has made it of. Error(kFail): another
// driver has made it.
template <class Own, class Settings>
const Own& As(const Settings& settings) {
  // Launcher and builder keep the settings of all drivers as one type, so that none of them knows a driver.
  const auto* own = dynamic_cast<const Own*>(&settings);
  if (own == nullptr) throw Error(Verdict::kFail, "these settings were made by another driver");
  return *own;
}

// The same, shared.
template <class Own, class Settings>
std::shared_ptr<const Own> As(const std::shared_ptr<Settings>& settings) {
  return {settings, &As<Own>(*settings)};
}

// All pools. They live as long as the configuration.
template <class Pool>
std::vector<const Pool*> PoolsOf(const ProviderConfig& config) {
  std::vector<const Pool*> pools;
  for (const auto& [name, pool] : config.pools) pools.push_back(&As<Pool>(*pool));
  return pools;
}

// All labels of a pool, likewise.
template <class Label>
std::vector<const Label*> LabelsOf(const PoolConfig& pool) {
  std::vector<const Label*> labels;
  for (const auto& [name, label] : pool.labels) labels.push_back(&As<Label>(*label));
  return labels;
}

// All labels of all pools, likewise.
template <class Label>
std::vector<const Label*> LabelsOf(const ProviderConfig& config) {
  std::vector<const Label*> labels;
  for (const auto& [name, pool] : config.pools) {
    for (const Label* label : LabelsOf<Label>(*pool)) labels.push_back(label);
  }
  return labels;
}

// The first label of all pools that is such, likewise; null: none is.
template <class Label, class Predicate>
const Label* FindLabel(const ProviderConfig& config, Predicate is_such) {
  for (const auto& [pool_name, pool] : config.pools) {
    for (const auto& [name, label] : pool->labels) {
      const Label& own = As<Label>(*label);
      if (std::invoke(is_such, own)) return &own;
    }
  }
  return nullptr;
}

// Whether one of the labels is such: AnyLabel<OwnLabel>(config, &OwnLabel::use_spot).
template <class Label, class Predicate>
bool AnyLabel(const ProviderConfig& config, Predicate is_such) {
  return FindLabel<Label>(config, is_such) != nullptr;
}

// The same of the pools.
template <class Pool, class Predicate>
bool AnyPool(const ProviderConfig& config, Predicate is_such) {
  return std::ranges::any_of(config.pools,
                             [&](const auto& pool) { return std::invoke(is_such, As<Pool>(*pool.second)); });
}

}  // namespace nodepool::driver::cloud
