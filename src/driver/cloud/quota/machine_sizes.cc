#include "driver/cloud/quota/machine_sizes.h"

namespace nodepool::driver::cloud {

Resources Least(const Resources& one, const Resources& other) {
  Resources least;
  for (const auto& [resource, amount] : one) {
    auto found = other.find(resource);
    if (found != other.end()) least[resource] = std::min(amount, found->second);
  }
  return least;
}

}  // namespace nodepool::driver::cloud
