#include "driver/cloud/api/list_cache.h"

#include <algorithm>
#include <cmath>

namespace nodepool::driver::cloud::api {

namespace {

constexpr std::size_t kKnown = 16;
constexpr std::size_t kLeastKnown = 3;
constexpr double kMostSaved = 20;
constexpr Duration kLeastPause = std::chrono::milliseconds(100);

}  // namespace

void UsualStart::Started(Duration took) {
  took_.push_back(took);
  if (took_.size() > kKnown) took_.pop_front();
}

void UsualStart::Reading(Duration after) {
  double earned = std::chrono::duration<double>(after) / std::chrono::duration<double>(pause_);
  saved_ = std::clamp(saved_ + earned - 1, 0.0, kMostSaved);
}

std::optional<UsualStart::Window> UsualStart::Expected() const {
  if (took_.size() < kLeastKnown) return std::nullopt;
  auto [least, most] = std::ranges::minmax(took_);
  Duration margin = std::max((most - least) / 4, 2 * kLeastPause);
  return Window{least - margin, most + margin};
}

Duration UsualStart::PauseAt(Duration age) const {
  std::optional<Window> expected = Expected();
  if (!expected || age >= expected->to) return pause_;
  const Duration least = saved_ < 1 ? pause_ : std::min(kLeastPause, pause_);
  // A start that fails is noticed later by as much.
  if (age < expected->from) return std::clamp(expected->from - age, least, 2 * pause_);
  if (saved_ < 1) return pause_;
  auto spread = std::chrono::duration_cast<Duration>((expected->to - expected->from) / std::floor(saved_));
  return std::clamp(spread, least, pause_);
}

}  // namespace nodepool::driver::cloud::api
