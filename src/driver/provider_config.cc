#include "driver/provider_config.h"

#include <algorithm>

namespace nodepool::driver {

namespace {

constexpr const char* kAlwaysPresent[] = {resource::kCores, resource::kInstances, resource::kRam};

}  // namespace

QuotaInformation::QuotaInformation() : QuotaInformation({}, 0) {}

QuotaInformation::QuotaInformation(Resources resources, double absent)
    : resources_(std::move(resources)), absent_(absent) {
  for (const char* resource : kAlwaysPresent) resources_.try_emplace(resource, absent_);
}

QuotaInformation QuotaInformation::Amount(Resources resources) {
  return QuotaInformation(std::move(resources), 0);
}

QuotaInformation QuotaInformation::Limit(Resources resources) {
  return QuotaInformation(std::move(resources), kUnlimited);
}

QuotaInformation QuotaInformation::OneInstance() { return Amount({{resource::kInstances, 1}}); }

void QuotaInformation::Add(const QuotaInformation& other) {
  for (const auto& [resource, unused] : other.resources_) resources_.try_emplace(resource, absent_);
  for (auto& [resource, amount] : resources_) amount = ExactSum(amount, other.Get(resource));
}

void QuotaInformation::Subtract(const QuotaInformation& other) {
  for (const auto& [resource, unused] : other.resources_) resources_.try_emplace(resource, absent_);
  for (auto& [resource, amount] : resources_) amount = ExactSum(amount, -other.Get(resource));
}

bool QuotaInformation::NonNegative() const {
  return std::ranges::all_of(resources_, [](const auto& entry) { return entry.second >= 0; });
}

double QuotaInformation::Get(const std::string& resource) const {
  auto found = resources_.find(resource);
  return found == resources_.end() ? absent_ : found->second;
}

}  // namespace nodepool::driver
