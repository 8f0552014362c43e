#include "builder/reason_in_log.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace nodepool::builder {
namespace {

constexpr std::array<std::string_view, 10> kErrorWords = {
    "error", "fail", "fatal", "cannot", "can't", "could not", "not found", "no such", "no space", "denied"};
constexpr std::size_t kMostReason = 200;

// "2024-05-01 10:00:00.123 | text" (builder.md 20.2).
std::string_view WithoutTime(std::string_view line) {
  constexpr std::string_view kPattern = "0000-00-00 00:00:00.000 | ";
  if (line.size() < kPattern.size()) return line;
  for (std::size_t i = 0; i < kPattern.size(); ++i) {
    bool is_digit = line[i] >= '0' && line[i] <= '9';
    if (kPattern[i] == '0' ? !is_digit : line[i] != kPattern[i]) return line;
  }
  return line.substr(kPattern.size());
}

bool SpeaksOfError(std::string_view line) {
  std::string lower = Lower(line);
  return std::ranges::any_of(kErrorWords,
                             [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

}  // namespace

std::string ReasonInLog(std::string_view log) {
  std::string_view last, last_error;
  for (std::size_t start = 0; start < log.size();) {
    std::size_t end = std::min(log.find('\n', start), log.size());
    std::string_view line = Trim(WithoutTime(log.substr(start, end - start)));
    start = end + 1;
    if (line.empty() || line.front() == '+') continue;
    last = line;
    if (SpeaksOfError(line)) last_error = line;
  }
  return Excerpt(last_error.empty() ? last : last_error, kMostReason);
}

}  // namespace nodepool::builder
