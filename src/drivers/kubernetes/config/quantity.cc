#include "drivers/kubernetes/config/quantity.h"

#include <charconv>
#include <cmath>
#include <map>

namespace nodepool::drivers::kubernetes {

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
