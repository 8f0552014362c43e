#include "model/amounts.h"

#include <cmath>

namespace nodepool {

namespace json = boost::json;

json::object Amounts(const Resources& resources) {
  json::object amounts;
  amounts.reserve(resources.size());
  for (const auto& [resource, amount] : resources) {
    if (!std::isfinite(amount)) continue;
    bool is_whole = std::abs(amount) < 1e15 && amount == std::floor(amount);
    amounts[resource] = is_whole ? json::value(static_cast<std::int64_t>(amount)) : json::value(amount);
  }
  return amounts;
}

}  // namespace nodepool
