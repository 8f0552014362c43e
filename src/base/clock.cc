#include "base/clock.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string_view>

namespace nodepool {

// Both directions convert seconds and their fraction separately: a double of seconds is less exact
// than nanoseconds, and a time stamp must survive reading and writing.
double ToSeconds(WallTime time) {
  Duration since_epoch = time.time_since_epoch();
  auto whole = std::chrono::floor<std::chrono::seconds>(since_epoch);
  return static_cast<double>(whole.count()) + static_cast<double>((since_epoch - whole).count()) / 1e9;
}

WallTime FromSeconds(double seconds) {
  // A clock of nanoseconds has about 292 years either side of 1970, and records may hold anything: of half of
  // that any two times have a difference, too.
  constexpr double kLimit = 4.5e9;
  double bounded = seconds == seconds ? std::clamp(seconds, -kLimit, kLimit) : 0;
  double whole = std::floor(bounded);
  return WallTime(std::chrono::seconds(static_cast<std::int64_t>(whole)) +
                  Duration(std::llround((bounded - whole) * 1e9)));
}

Clock::TimerId TimerQueue::Add(SteadyTime when, std::move_only_function<void()> callback) {
  Clock::TimerId id = ++last_id_;
  by_time_.emplace(Key(when, id), std::move(callback));
  when_.emplace(id, when);
  return id;
}

bool TimerQueue::Remove(Clock::TimerId id) {
  auto it = when_.find(id);
  if (it == when_.end()) return false;
  by_time_.erase(Key(it->second, id));
  when_.erase(it);
  return true;
}

std::move_only_function<void()> TimerQueue::PopEarliest() {
  auto node = by_time_.extract(by_time_.begin());
  when_.erase(node.key().second);
  return std::move(node.mapped());
}

namespace {

constexpr const char* kHttpDate = "%a, %d %b %Y %H:%M:%S GMT";

std::string Format(WallTime time, const char* format) {
  auto whole = std::chrono::floor<std::chrono::seconds>(time);
  std::time_t seconds = whole.time_since_epoch().count();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  std::size_t size = std::strftime(text, sizeof(text), format, &parts);
  return std::string(text, size);
}

// Also returns the text after it in `rest`.
std::optional<WallTime> Parse(const std::string& text, const char* format, std::string_view& rest) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), format, &parts);
  if (end == nullptr) return std::nullopt;
  rest = end;
  return FromSeconds(static_cast<double>(::timegm(&parts)));
}

}  // namespace

std::string Iso8601(WallTime time) { return Format(time, "%Y-%m-%dT%H:%M:%SZ"); }

std::optional<WallTime> ParseIso8601(const std::string& text) {
  std::string_view rest;
  std::optional<WallTime> time = Parse(text, "%Y-%m-%dT%H:%M:%S", rest);
  if (rest.starts_with('.'))
    rest.remove_prefix(std::min(rest.find_first_not_of("0123456789", 1), rest.size()));
  return rest == "Z" || rest == "+00:00" ? time : std::nullopt;
}

std::string HttpDate(WallTime time) { return Format(time, kHttpDate); }

std::optional<WallTime> ParseHttpDate(const std::string& text) {
  std::string_view rest;
  std::optional<WallTime> time = Parse(text, kHttpDate, rest);
  return rest.empty() ? time : std::nullopt;
}

}  // namespace nodepool
