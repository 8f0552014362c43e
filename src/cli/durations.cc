#include "cli/durations.h"

#include <fmt/format.h>

#include <charconv>

#include "base/text.h"

namespace nodepool::cli {

Expected<Duration> ParseDuration(std::string_view text) {
  constexpr double kLongest = 100 * 365 * 86400.0;
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  double factor = unit.empty() || unit == "s" ? 1
                  : unit == "m"               ? 60
                  : unit == "h"               ? 3600
                  : unit == "d"               ? 86400
                                              : 0;
  if (error != std::errc() || factor == 0 || !(number >= 0) || !(number * factor <= kLongest)) {
    return Unexpected(
        Verdict::kInvalid,
        fmt::format("\"{}\" is no duration; write for example 90, 90s, 5m, 1.5h or 2d", Excerpt(text)));
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(number * factor));
}

}  // namespace nodepool::cli
