#include "sched/breakers/breaker.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace nodepool::sched {
namespace {

struct Counts {
  std::int64_t failures = 0;
  std::int64_t successes = 0;
  std::map<FailureKind, std::int64_t> kinds;

  std::int64_t of(FailureKind kind) const {
    auto found = kinds.find(kind);
    return found == kinds.end() ? 0 : found->second;
  }
};

Counts CountOf(const std::vector<LaunchAttempt>& attempts) {
  Counts counts;
  for (const LaunchAttempt& attempt : attempts) {
    if (!attempt.failure) {
      ++counts.successes;
      continue;
    }
    ++counts.failures;
    ++counts.kinds[*attempt.failure];
  }
  return counts;
}

// A cloud that is full gives machines now and then: it is broken only if it has given none.
bool AreEnough(const Counts& counts, const BreakerSettings& settings) {
  std::int64_t refusals = counts.of(FailureKind::kQuota) + counts.of(FailureKind::kCapacity);
  std::int64_t counted = counts.successes == 0 ? counts.failures : counts.failures - refusals;
  std::int64_t all = counts.successes + counted;
  return counted >= settings.failures && counted * 100 >= settings.share * all;
}

// Whether the newest all failed, one more than are enough: what worked for long works no more. Refusals for
// quota and capacity say neither.
bool FailsSinceThen(const std::vector<LaunchAttempt>& attempts, const BreakerSettings& settings) {
  int failed = 0;
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend() && attempt->failure; ++attempt) {
    bool is_refusal = attempt->failure == FailureKind::kQuota || attempt->failure == FailureKind::kCapacity;
    if (!is_refusal) ++failed;
  }
  return failed > settings.failures;
}

// What the attempts are of: the parts of what the breaker covers.
std::string PartOf(const BreakerKey& key, const LaunchAttempt& attempt) {
  return key.pool.empty() ? attempt.pool.value : attempt.label.value;
}

// Whether several parts were tried and each failed the last time.
bool HaveAllPartsFailed(const BreakerKey& key, const std::vector<LaunchAttempt>& attempts) {
  std::map<std::string, bool> has_failed;
  for (const LaunchAttempt& attempt : attempts)
    has_failed[PartOf(key, attempt)] = attempt.failure.has_value();
  return has_failed.size() > 1 &&
         std::ranges::all_of(has_failed, [](const auto& part) { return part.second; });
}

// Credentials are the provider's: what is refused for them in one pool is refused in each.
bool AreCredentialsRefused(const std::vector<LaunchAttempt>& attempts, const BreakerSettings& settings) {
  int refused = 0;
  for (const LaunchAttempt& attempt : attempts) {
    if (!attempt.failure) refused = 0;
    if (attempt.failure == FailureKind::kAuthentication) ++refused;
  }
  return refused >= settings.failures;
}

bool IsWideEnough(const BreakerKey& key, const std::vector<LaunchAttempt>& attempts,
                  const BreakerSettings& settings) {
  if (!key.label.empty() || HaveAllPartsFailed(key, attempts)) return true;
  return key.pool.empty() && AreCredentialsRefused(attempts, settings);
}

std::string TextOf(const Counts& counts) {
  std::vector<std::pair<FailureKind, std::int64_t>> kinds(counts.kinds.begin(), counts.kinds.end());
  std::ranges::stable_sort(kinds, std::greater(), &std::pair<FailureKind, std::int64_t>::second);
  std::vector<std::string> texts;
  for (const auto& [kind, count] : kinds) texts.push_back(fmt::format("{} {}", ToString(kind), count));
  return Join(texts, ", ");
}

Breaker EvidenceIn(const Counts& counts, const std::vector<LaunchAttempt>& attempts) {
  Breaker breaker;
  auto most = std::ranges::max_element(counts.kinds, {}, [](const auto& entry) { return entry.second; });
  breaker.kind = ToString(most->first);
  breaker.kinds = TextOf(counts);
  breaker.failures = counts.failures;
  breaker.attempts = counts.failures + counts.successes;
  auto last = std::ranges::find_if(attempts.rbegin(), attempts.rend(),
                                   [](const LaunchAttempt& attempt) { return attempt.failure.has_value(); });
  breaker.said = last->said;
  return breaker;
}

}  // namespace

void RecentAttempts::Add(LaunchAttempt attempt) {
  attempt.said = Excerpt(attempt.said, kMostSaid);
  attempts_.push_back(std::move(attempt));
  if (attempts_.size() > kMost) attempts_.pop_front();
}

std::vector<LaunchAttempt> RecentAttempts::Within(Duration window, SteadyTime now) const {
  std::vector<LaunchAttempt> recent;
  for (const LaunchAttempt& attempt : attempts_) {
    if (now - attempt.ended < window) recent.push_back(attempt);
  }
  return recent;
}

std::optional<Breaker> Judge(const BreakerKey& key, const RecentAttempts& attempts,
                             const BreakerSettings& settings, SteadyTime now) {
  if (!settings.is_on) return std::nullopt;
  std::vector<LaunchAttempt> recent = attempts.Within(settings.window, now);
  Counts counts = CountOf(recent);
  bool are_enough = AreEnough(counts, settings) || FailsSinceThen(recent, settings);
  if (!are_enough || !IsWideEnough(key, recent, settings)) return std::nullopt;
  return EvidenceIn(counts, recent);
}

Duration ProbePause(const BreakerSettings& settings, std::int64_t failed_probes, double chance) {
  constexpr std::int64_t kMostDoublings = 20;
  Duration pause = settings.probe_after;
  for (std::int64_t i = 0; i < std::min(failed_probes, kMostDoublings) && pause < settings.probe_max; ++i)
    pause *= 2;
  pause = std::min(pause, settings.probe_max);
  return std::chrono::duration_cast<Duration>(pause * (0.75 + 0.5 * chance));
}

std::int64_t SuccessesToClose(const Breaker& breaker) {
  constexpr std::int64_t kMorePerRelapse = 3;
  constexpr std::int64_t kMost = 10;
  return std::min(kMost, 1 + kMorePerRelapse * std::clamp(breaker.relapses, std::int64_t{0}, kMost));
}

Standing StandingOf(const OpenBreaker& widest) {
  return widest.is_own_probe && !widest.is_taken ? Standing::kMayProbe : Standing::kOpen;
}

bool IsProbeDue(const Breaker& breaker, const Prober& prober, const BreakerSettings& settings) {
  if (breaker.prober.empty()) return true;
  if (prober.is_self) return false;
  return !prober.is_alive || prober.since >= settings.probe_max;
}

}  // namespace nodepool::sched
