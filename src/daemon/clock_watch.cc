#include "daemon/clock_watch.h"

namespace nodepool::daemon {
namespace {

constexpr Duration kInterval = std::chrono::seconds(1);
// Less is NTP's ordinary correction.
constexpr Duration kJump = std::chrono::seconds(1);

}  // namespace

ClockWatch::ClockWatch(Loop& loop) : loop_(loop), offset_(Offset()) { Wait(); }

void ClockWatch::Wait() {
  timer_ = loop_.clock().CallAt(loop_.SteadyNow() + kInterval, [this] { Check(); });
}

void ClockWatch::Check() {
  Duration jump = Offset() - offset_;
  offset_ += jump;
  Wait();
  if (std::chrono::abs(jump) < kJump) return;
  logger_.Warning(
      "The system's clock was set {} by {:.0f} s. Ages of nodes and images are computed with the new time; "
      "check the time synchronization of this machine",
      jump > Duration(0) ? "forward" : "back", std::chrono::duration<double>(std::chrono::abs(jump)).count());
}

}  // namespace nodepool::daemon
