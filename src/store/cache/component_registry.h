#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "store/cache/record_cache.h"

namespace nodepool::store {

// Every process that registered itself under /nodepool/components (coordination.md 8), by its path below,
// e.g. "pool/np010000000003".
class ComponentRegistry : public RecordCache<Component> {
 public:
  using RecordCache::RecordCache;

  // The registered pools only, which are the candidates for every request.
  std::vector<const Component*> Pools() const {
    std::vector<const Component*> pools;
    for (const auto& [path, component] : all()) {
      if (component.kind == ComponentKind::kPool) pools.push_back(&component);
    }
    return pools;
  }
  bool Contains(const std::string& path) const { return Find(path) != nullptr; }

  // The effective model version: the minimum over all components and our own 0.
  std::int64_t model_api() const {
    std::int64_t min = 0;
    for (const auto& [path, component] : all()) min = std::min(min, component.model_api);
    return min;
  }
};

}  // namespace nodepool::store
