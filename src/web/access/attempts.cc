#include "web/access/attempts.h"

#include <algorithm>

namespace nodepool::web {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(250);
constexpr Duration kLongestPause = std::chrono::seconds(30);
constexpr Duration kMemory = std::chrono::minutes(10);
constexpr int kMaxDoublings = 7;

Duration PauseAfter(int failures) {
  return std::min(kLongestPause, kFirstPause * (1 << std::min(failures - 1, kMaxDoublings)));
}

}  // namespace

Duration Attempts::PauseOf(const std::string& key, SteadyTime now) const {
  auto known = failures_.find(key);
  if (known == failures_.end() || now - known->second.last > kMemory) return Duration::zero();
  return std::max(Duration::zero(), known->second.last + PauseAfter(known->second.count) - now);
}

void Attempts::Failed(const std::string& key, SteadyTime now) {
  DropOld(now);
  auto [entry, is_new] = failures_.try_emplace(key);
  if (is_new) order_.push_back(key);
  ++entry->second.count;
  entry->second.last = now;
}

// What failed lately but is among the oldest keys stays, unless there are too many.
void Attempts::DropOld(SteadyTime now) {
  while (!order_.empty()) {
    auto oldest = failures_.find(order_.front());
    bool is_recent = now - oldest->second.last <= kMemory;
    if (is_recent && failures_.size() < kMaxKeys) return;
    failures_.erase(oldest);
    order_.pop_front();
  }
}

}  // namespace nodepool::web
