#include "driver/cloud/quota/others_use.h"

#include <utility>

namespace nodepool::driver::cloud {

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
