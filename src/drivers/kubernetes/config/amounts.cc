#include "drivers/kubernetes/config/amounts.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/json_fields.h"
#include "drivers/kubernetes/config/quantity.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

namespace {

constexpr double kMebibyte = 0x1p20;
constexpr double kMegabyte = 1e6;

// A resource's name in records, and of how many of Kubernetes' units its own unit is.
std::pair<std::string, double> NameAndUnit(std::string_view key) {
  constexpr std::string_view kRequests = "requests.";
  if (key.starts_with(kRequests)) key.remove_prefix(kRequests.size());
  if (key == "cpu") return {resource::kCores, 1};
  if (key == "memory") return {resource::kRam, kMebibyte};
  if (key == "pods" || key == "count/pods") return {resource::kInstances, 1};
  return {std::string(key), key == "ephemeral-storage" ? kMegabyte : 1};
}

Resources RequestsOfContainer(const json::value& container) {
  const json::object* resources = ObjectIn(container, "resources");
  const json::object* requests = resources == nullptr ? nullptr : ObjectIn(*resources, "requests");
  return requests == nullptr ? Resources() : AmountsOf(*requests);
}

}  // namespace

Resources AmountsOf(const json::object& quantities) {
  Resources amounts;
  for (const auto& [key, value] : quantities) {
    std::optional<double> quantity = ParseQuantity(TextIn(quantities, key));
    if (!quantity) continue;
    auto [name, unit] = NameAndUnit(key);
    double amount = *quantity / unit;
    auto [known, is_new] = amounts.try_emplace(std::move(name), amount);
    if (!is_new) known->second = std::min(known->second, amount);
  }
  return amounts;
}

std::string NameInRecords(std::string_view key) { return NameAndUnit(key).first; }

Resources RequestsOf(const json::object& spec) {
  Resources sum;
  if (const json::array* containers = ArrayIn(spec, "containers")) {
    for (const json::value& container : *containers) Add(sum, RequestsOfContainer(container));
  }
  if (const json::array* first = ArrayIn(spec, "initContainers")) {
    for (const json::value& container : *first) {
      for (const auto& [name, amount] : RequestsOfContainer(container))
        sum[name] = std::max(sum[name], amount);
    }
  }
  if (const json::object* overhead = ObjectIn(spec, "overhead")) Add(sum, AmountsOf(*overhead));
  return sum;
}

}  // namespace nodepool::drivers::kubernetes
