#include "model/resources.h"

#include <cmath>
#include <limits>

namespace nodepool {
namespace {

constexpr double kMillion = 1e6;
// Up to this value a double represents every millionth.
constexpr double kLargestExact = 4e9;

std::int64_t Millionths(double amount) { return std::llround(amount * kMillion); }
double FromMillionths(std::int64_t millionths) { return static_cast<double>(millionths) / kMillion; }

double AmountOf(const Resources& amount, const std::string& resource) {
  auto it = amount.find(resource);
  return it == amount.end() ? 0 : it->second;
}

}  // namespace

double ExactSum(double amount, double more) {
  double sum = amount + more;
  if (std::isnan(sum)) return std::numeric_limits<double>::infinity();
  bool is_exact = std::abs(amount) < kLargestExact && std::abs(more) < kLargestExact;
  return is_exact ? FromMillionths(Millionths(amount) + Millionths(more)) : sum;
}

void Add(Resources& amount, const Resources& more, int times) {
  for (const auto& [resource, value] : more) {
    double& sum = amount[resource];
    sum = ExactSum(sum, value * times);
  }
}

void Subtract(Resources& amount, const Resources& less) { Add(amount, less, -1); }

Resources Shortage(const Resources& limit, const Resources& used, const Resources& need) {
  Resources shortage;
  for (const auto& [resource, allowed] : limit) {
    double needed = AmountOf(need, resource);
    if (needed <= 0) continue;  // perhaps over a lowered limit already, but this uses no more
    double missing = ExactSum(ExactSum(AmountOf(used, resource), needed), -allowed);
    if (missing > 0) shortage[resource] = missing;
  }
  return shortage;
}

void ResourceSum::Add(const Resources& amount) {
  for (const auto& [name, value] : amount) Change(name, static_cast<std::uint64_t>(Millionths(value)));
}

void ResourceSum::Subtract(const Resources& amount) {
  for (const auto& [name, value] : amount) {
    Change(name, std::uint64_t{0} - static_cast<std::uint64_t>(Millionths(value)));
  }
}

void ResourceSum::Change(const std::string& name, std::uint64_t millionths) {
  std::uint64_t& sum = millionths_[name];
  sum += millionths;
  if (sum == 0) {
    millionths_.erase(name);
    total_.erase(name);
  } else {
    total_[name] = FromMillionths(static_cast<std::int64_t>(sum));
  }
}

}  // namespace nodepool
