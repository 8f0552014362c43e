#include "runners/set/runner_versions.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "async/attempt.h"
#include "base/text.h"
#include "runners/metrics.h"

namespace nodepool::runners {
namespace {

constexpr Duration kVersionsPause = std::chrono::hours(24);
constexpr Duration kVersionsRetry = std::chrono::hours(1);
constexpr double kSecondsOfDay = 86'400;
constexpr int kDaysOfOldVersion = 30;

std::vector<int> NumbersOf(const std::string& version) {
  std::vector<int> numbers;
  for (const std::string& part : Split(version, '.')) {
    int number = 0;
    std::from_chars(part.data(), part.data() + part.size(), number);
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

// The age counts from the day when a newer one was first seen, whatever comes after that.
Task<> RunnerVersions::Follow() {
  for (;;) {
    std::shared_ptr<ScaleSets> service = set_.service;
    Outcome<std::string> newest = co_await Attempt(service->NewestVersion());
    bool is_new = newest && !newest->empty() && *newest != record_.newest_version;
    bool was_old = IsOlderVersion(record_.version, record_.newest_version);
    if (is_new && !(was_old && record_.newest_since)) record_.newest_since = set_.context.loop.Now();
    if (is_new) record_.newest_version = std::move(*newest);
    changed_();
    co_await set_.context.loop.SleepFor(newest ? kVersionsPause : kVersionsRetry);
  }
}

void RunnerVersions::Seen(const std::string& version) {
  if (!version.empty()) record_.version = version;
}

std::string RunnerVersions::Warning() const {
  WallTime now = set_.context.loop.Now();
  WallTime since = record_.newest_since.value_or(now);
  bool is_old = IsOlderVersion(record_.version, record_.newest_version);
  double days = is_old ? (ToSeconds(now) - ToSeconds(since)) / kSecondsOfDay : 0;
  set_.context.metrics.Set(kVersionAgeGauge, {set_.key.service, set_.key.set}, days);
  return VersionWarning(record_.version, record_.newest_version, since, now);
}

bool IsOlderVersion(const std::string& version, const std::string& other) {
  return !version.empty() && !other.empty() && NumbersOf(version) < NumbersOf(other);
}

std::string VersionWarning(const std::string& version, const std::string& newest, WallTime newer_since,
                           WallTime now) {
  if (!IsOlderVersion(version, newest)) return "";
  auto age = std::chrono::duration_cast<std::chrono::hours>(now - newer_since).count() / 24;
  std::int64_t left = kDaysOfOldVersion - age;
  std::string when =
      left > 0 ? fmt::format("in {} day{}", left, left == 1 ? "" : "s") : "from now on at any time";
  return fmt::format(
      "the runner on the nodes is {}, the newest is {}: the service refuses it {}; build the image", version,
      newest, when);
}

}  // namespace nodepool::runners
