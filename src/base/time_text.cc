#include "base/time_text.h"

#include <ctime>
#include <string_view>

namespace nodepool {
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
