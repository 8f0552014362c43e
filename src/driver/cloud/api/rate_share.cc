#include "driver/cloud/api/rate_share.h"

#include <algorithm>

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

}  // namespace nodepool::driver::cloud::api
