#include "driver/cloud/api/rate_limiter.h"

#include <algorithm>

#include "base/scope_exit.h"

namespace nodepool::driver::cloud::api {

namespace {

constexpr double kGrowthPerSecond = 0.02;
constexpr double kLeastUnanswered = 0.125;

constexpr double kSlowFactor = 4;
constexpr double kSlowSeconds = 1;
constexpr int kSlowInARow = 3;
constexpr int kAnswersToKnow = 10;
constexpr double kStep = 0.05;           // of the usual time, towards each answer's
constexpr std::size_t kMostCalls = 500;  // whose usual time is known

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void RateShare::Unanswered(SteadyTime sent, SteadyTime now) {
  Halve(std::max(least_, kLeastUnanswered), sent, now);
}

bool RateShare::Answered(const std::string& call, SteadyTime sent, SteadyTime now) {
  bool is_slow = IsSlow(call, Seconds(now - sent));
  slow_in_a_row_ = is_slow ? slow_in_a_row_ + 1 : 0;
  if (slow_in_a_row_ < kSlowInARow) return false;
  slow_in_a_row_ = 0;
  Halve(least_, sent, now);
  return true;
}

double RateShare::At(SteadyTime now) const {
  return std::min(1.0, share_ + kGrowthPerSecond * Seconds(now - changed_at_));
}

void RateShare::Halve(double least, SteadyTime sent, SteadyTime now) {
  if (sent <= changed_at_) return;
  double before = At(now);
  share_ = std::min(before, std::max(least, before / 2));
  changed_at_ = now;
}

bool RateShare::IsSlow(const std::string& call, double seconds) {
  auto known = usual_.find(call);
  if (known == usual_.end()) {
    if (usual_.size() < kMostCalls) usual_[call] = {seconds, 1};
    return false;
  }
  Usual& usual = known->second;
  bool is_slow = usual.answers >= kAnswersToKnow && seconds > kSlowFactor * usual.seconds &&
                 seconds > usual.seconds + kSlowSeconds;
  if (usual.answers < kAnswersToKnow) {
    usual.seconds += (seconds - usual.seconds) / ++usual.answers;
  } else {
    usual.seconds *= seconds > usual.seconds ? 1 + kStep : 1 - kStep;
  }
  return is_slow;
}

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
