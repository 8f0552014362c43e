#include "drivers/aws/api/server_clock.h"

#include "base/time_text.h"

namespace nodepool::drivers::aws {

void ServerClock::CorrectAfter(const net::HttpReply& refusal) {
  constexpr Duration kTolerated = std::chrono::seconds(60);
  std::optional<WallTime> time = ParseHttpDate(refusal.Header("date"));
  if (!time) return;
  Duration offset = *time - loop_.Now();
  if (std::chrono::abs(offset - offset_) < kTolerated) return;
  offset_ = std::chrono::abs(offset) < kTolerated ? Duration(0) : offset;
  if (offset_ == Duration(0)) return;
  logger_.Warning(
      "The clock of this host is {} s {} that of AWS, which refuses its signatures: calls are signed with "
      "AWS's "
      "time. Correct the clock",
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::abs(offset_)).count(),
      offset_ > Duration(0) ? "behind" : "ahead of");
}

}  // namespace nodepool::drivers::aws
