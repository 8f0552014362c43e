#include "zk/server/session_clock.h"

namespace nodepool::zk::server {
namespace {

// A check that comes later than this follows a time in which no message was read.
constexpr Duration kLate = std::chrono::seconds(1);

}  // namespace

SessionClock::~SessionClock() {
  for (auto& [session, timed] : timed_) loop_.clock().CancelTimer(timed.timer);
}

void SessionClock::Start(std::int64_t session, Duration timeout) {
  Stop(session);
  Timed& timed = timed_[session];
  timed.timeout = timeout;
  timed.heard = loop_.SteadyNow();
  Arm(session, timed);
}

void SessionClock::Heard(std::int64_t session) {
  auto found = timed_.find(session);
  if (found != timed_.end()) found->second.heard = loop_.SteadyNow();
}

void SessionClock::Stop(std::int64_t session) {
  auto found = timed_.find(session);
  if (found == timed_.end()) return;
  loop_.clock().CancelTimer(found->second.timer);
  timed_.erase(found);
}

void SessionClock::Arm(std::int64_t session, Timed& timed) {
  timed.timer = loop_.clock().CallAt(timed.heard + timed.timeout, [this, session] { Check(session); });
}

void SessionClock::Check(std::int64_t session) {
  auto found = timed_.find(session);
  Timed& timed = found->second;
  Duration late = loop_.SteadyNow() - (timed.heard + timed.timeout);
  if (late > kLate) timed.heard = loop_.SteadyNow();
  if (late < Duration(0) || late > kLate) return Arm(session, timed);
  timed_.erase(found);
  expire_(session);
}

}  // namespace nodepool::zk::server
