#include "driver/cloud/api/server_clock.h"

#include <fmt/format.h>

#include "base/request_id.h"
#include "base/time_text.h"

namespace nodepool::driver::cloud::api {

void ServerClock::CorrectAfter(const net::HttpReply& refusal, std::string_view call,
                               const std::string& request_id) {
  constexpr Duration kTolerated = std::chrono::seconds(60);
  std::optional<WallTime> time = ParseHttpDate(refusal.Header("date"));
  if (!time) return;
  Duration offset = *time - loop_.Now();
  if (std::chrono::abs(offset - offset_) < kTolerated) return;
  offset_ = std::chrono::abs(offset) < kTolerated ? Duration(0) : offset;
  if (offset_ == Duration(0)) return;
  std::string message = fmt::format(
      "The clock of this host is {} s {} that of {}, which refused {} for it; calls are signed with {}'s "
      "time now. "
      "Correct the clock",
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::abs(offset_)).count(),
      offset_ > Duration(0) ? "behind" : "ahead of", cloud_, call, cloud_);
  logger_.Warning("{}", WithRequestId(std::move(message), request_id));
}

}  // namespace nodepool::driver::cloud::api
