#include "drivers/kubernetes/config/amounts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "base/json_fields.h"

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

std::optional<double> ParseQuantity(std::string_view text) {
  static const std::map<std::string_view, double> factors = {
      {"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},   {"k", 1e3},     {"M", 1e6},
      {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},   {"Ki", 0x1p10}, {"Mi", 0x1p20},
      {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
  double number = 0;
  // Without an exponent "1E" is a number and a suffix.
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  auto factor = factors.find(suffix);
  if (factor != factors.end()) {
    number *= factor->second;
  } else {
    auto [exponent_end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc() || exponent_end != text.data() + text.size()) return std::nullopt;
  }
  if (!std::isfinite(number) || number < 0) return std::nullopt;
  return number;
}

}  // namespace nodepool::drivers::kubernetes
