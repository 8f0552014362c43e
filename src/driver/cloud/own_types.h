#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "driver/provider_config.h"

// The labels and pools of a provider as the types that its driver derives (LoadProviderConfig).
namespace nodepool::driver::cloud {

// A label, pool or disk image as the type that its driver has made it of.
template <class Own, class Settings>
const Own& As(const Settings& settings) {
  return dynamic_cast<const Own&>(settings);
}

// All labels of all pools. They live as long as the configuration.
template <class Label>
std::vector<const Label*> LabelsOf(const ProviderConfig& config) {
  std::vector<const Label*> labels;
  for (const auto& [pool_name, pool] : config.pools) {
    for (const auto& [name, label] : pool->labels) labels.push_back(&As<Label>(*label));
  }
  return labels;
}

// Whether one of the labels is such: AnyLabel<OwnLabel>(config, &OwnLabel::use_spot).
template <class Label, class Predicate>
bool AnyLabel(const ProviderConfig& config, Predicate is_such) {
  return std::ranges::any_of(LabelsOf<Label>(config),
                             [&](const Label* label) { return std::invoke(is_such, *label); });
}

// The same of the pools.
template <class Pool, class Predicate>
bool AnyPool(const ProviderConfig& config, Predicate is_such) {
  return std::ranges::any_of(config.pools,
                             [&](const auto& pool) { return std::invoke(is_such, As<Pool>(*pool.second)); });
}

}  // namespace nodepool::driver::cloud
