#include "driver/quota_information.h"

#include <cmath>

namespace nodepool::driver {

namespace {

constexpr const char* kAlwaysPresent[] = {"cores", "instances", "ram"};

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

QuotaInformation QuotaInformation::OneInstance() { return Amount({{"instances", 1}}); }

void QuotaInformation::Add(const QuotaInformation& other) {
  for (const auto& [resource, unused] : other.resources_) resources_.try_emplace(resource, absent_);
  for (auto& [resource, amount] : resources_) amount += other.Get(resource);
}

void QuotaInformation::Subtract(const QuotaInformation& other) {
  for (const auto& [resource, unused] : other.resources_) resources_.try_emplace(resource, absent_);
  for (auto& [resource, amount] : resources_) {
    double rest = amount - other.Get(resource);
    amount = std::isnan(rest) ? kUnlimited : rest;
  }
}

bool QuotaInformation::NonNegative() const {
  for (const auto& [resource, amount] : resources_) {
    if (amount < 0) return false;
  }
  return true;
}

Resources QuotaInformation::Shortage() const {
  Resources shortage;
  for (const auto& [resource, amount] : resources_) {
    if (amount < 0) shortage.emplace(resource, amount);
  }
  return shortage;
}

double QuotaInformation::Get(const std::string& resource) const {
  auto found = resources_.find(resource);
  return found == resources_.end() ? absent_ : found->second;
}

}  // namespace nodepool::driver
