#include "driver/cloud/quota/account_counters.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/attempt.h"
#include "base/request_id.h"

namespace nodepool::driver::cloud {

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

}  // namespace nodepool::driver::cloud
