#include "drivers/aws/api/server_clock.h"

#include <fmt/format.h>

#include "base/request_id.h"
#include "base/time_text.h"
#include "drivers/aws/api/client_options.h"

namespace nodepool::drivers::aws {

void ServerClock::CorrectAfter(const net::HttpReply& refusal, std::string_view call) {
  constexpr Duration kTolerated = std::chrono::seconds(60);
  std::optional<WallTime> time = ParseHttpDate(refusal.Header("date"));
  if (!time) return;
  Duration offset = *time - loop_.Now();
  if (std::chrono::abs(offset - offset_) < kTolerated) return;
  offset_ = std::chrono::abs(offset) < kTolerated ? Duration(0) : offset;
  if (offset_ == Duration(0)) return;
  std::string message = fmt::format(
      "The clock of this host is {} s {} that of AWS, which refused {} for it; calls are signed with AWS's "
      "time "
      "now. Correct the clock",
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::abs(offset_)).count(),
      offset_ > Duration(0) ? "behind" : "ahead of", call);
  logger_.Warning("{}", WithRequestId(std::move(message), RequestIdOf(refusal)));
}

}  // namespace nodepool::drivers::aws
