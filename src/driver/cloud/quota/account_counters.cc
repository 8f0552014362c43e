#include "driver/cloud/quota/account_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "async/task.h"
#include "base/error.h"

namespace nodepool::driver::cloud {

Resources Least(const Resources& one, const Resources& other) {
  Resources least;
  for (const auto& [resource, amount] : one) {
    auto found = other.find(resource);
    if (found != other.end()) least[resource] = std::min(amount, found->second);
  }
  return least;
}

namespace {

constexpr double kMost = 1e12;
constexpr std::size_t kMostCounters = 10'000;

}  // namespace

Task<> AccountCounters::Refresh() {
  Outcome<> read = co_await Attempt(read_(*this));
  bool is_new = ReplaceMessage(fault_, read ? "" : read.error().message());
  if (fault_.empty()) co_return;
  logger_.Write(
      is_new ? log::Level::kWarning : log::Level::kDebug,
      fmt::format("The quotas of {} could not be read; {}: {}", what_,
                  known_.empty() ? cloud_ + "'s own refusals are the limit" : "the last ones count", fault_));
}

void AccountCounters::Set(const std::string& resource, double limit, double usage) {
  if (resource.empty() || known_.size() >= kMostCounters) return;
  known_[resource] = {std::clamp(limit, 0.0, kMost), std::clamp(usage, 0.0, kMost)};
}

const Counter* AccountCounters::Find(const std::string& resource) const {
  auto found = known_.find(resource);
  return found == known_.end() ? nullptr : &found->second;
}

Resources AccountCounters::Collect(const std::set<std::string>& resources, double Counter::*amount) const {
  Resources amounts;
  for (const std::string& resource : resources) {
    if (const Counter* counter = Find(resource)) amounts[resource] = counter->*amount;
  }
  return amounts;
}

namespace {

constexpr Duration kLag = std::chrono::seconds(60);

}  // namespace

void OthersUse::Compare(const Resources& all, const Resources& own) {
  Resources others;
  for (const auto& [resource, amount] : all) {
    auto found = own.find(resource);
    double by_others = amount - (found == own.end() ? 0 : found->second);
    if (by_others > 0) others[resource] = by_others;
  }
  bool has_changed = !others.empty() && used_ != others;
  used_ = std::move(others);
  if (!has_changed || std::exchange(is_settling_, true)) return;
  tasks_.Spawn("read the quota again", ReadAgainLater());
}

std::optional<QuotaInformation> OthersUse::Find() const {
  if (!used_) return std::nullopt;
  return QuotaInformation::Amount(*used_);
}

Task<> OthersUse::ReadAgainLater() {
  co_await tasks_.loop().SleepFor(kLag);
  is_settling_ = false;
  framework_.QuotaChanged();
}

}  // namespace nodepool::driver::cloud
