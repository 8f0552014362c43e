#include "driver/cloud/api/rate_limiter.h"

#include <algorithm>

#include "base/scope_exit.h"

namespace nodepool::driver::cloud::api {

namespace {

// However often a service refuses calls, one is tried this often.
constexpr std::chrono::duration<double> kLongestInterval = std::chrono::seconds(10);
// What an unlimited rate counts as once the service refuses calls.
constexpr Duration kUnlimitedInterval = std::chrono::milliseconds(10);
constexpr int kMostFirstInARow = 3;

Duration UsualInterval(const RateLimiter::Settings& settings) {
  return settings.interval == Duration::zero() ? kUnlimitedInterval : settings.interval;
}

double LeastShare(const RateLimiter::Settings& settings) {
  return std::min(1.0, std::chrono::duration<double>(UsualInterval(settings)) / kLongestInterval);
}

}  // namespace

std::optional<RateLimiter::Settings> RateLimiter::PerSecond(double calls) {
  if (calls <= 0) return std::nullopt;
  return Settings{std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1 / calls))};
}

RateLimiter::RateLimiter(Loop& loop, Settings settings)
    : loop_(loop), settings_(settings), share_(LeastShare(settings), loop.SteadyNow()) {}

Task<> RateLimiter::WaitForTurn(Order order) {
  if (IsUnlimited() && first_.empty() && later_.empty()) co_return;
  Waiter waiter;
  (order == Order::kFirst ? first_ : later_).push_back(&waiter);
  ScopeExit leave([&] {
    Leave(order, waiter);
    WakeNext();
  });
  while (true) {
    while (!IsNext(waiter)) {
      waiter.is_next.Reset();
      co_await waiter.is_next.Wait();
    }
    SteadyTime turn = NextTurn();
    if (turn <= loop_.SteadyNow()) break;
    co_await loop_.SleepUntil(turn);
  }
  bool others_wait = order == Order::kFirst && !later_.empty();
  first_in_a_row_ = others_wait ? first_in_a_row_ + 1 : 0;
  full_at_ = std::max(loop_.SteadyNow(), full_at_) + Interval();
}

bool RateLimiter::IsUnlimited() const { return settings_.interval == Duration::zero() && Share() == 1; }

Duration RateLimiter::Interval() const {
  if (IsUnlimited()) return Duration::zero();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(UsualInterval(settings_)) /
                                              Share());
}

SteadyTime RateLimiter::NextTurn() const {
  return std::max(loop_.SteadyNow(), full_at_) - (settings_.burst - 1) * Interval();
}

bool RateLimiter::IsNext(const Waiter& waiter) const {
  bool is_turn_of_later = first_.empty() || (!later_.empty() && first_in_a_row_ >= kMostFirstInARow);
  const std::deque<Waiter*>& turn = is_turn_of_later ? later_ : first_;
  return !turn.empty() && turn.front() == &waiter;
}

void RateLimiter::Leave(Order order, const Waiter& waiter) {
  std::erase(order == Order::kFirst ? first_ : later_, &waiter);
}

void RateLimiter::WakeNext() {
  for (const std::deque<Waiter*>* queue : {&first_, &later_}) {
    if (!queue->empty() && IsNext(*queue->front())) queue->front()->is_next.Set();
  }
}

}  // namespace nodepool::driver::cloud::api
