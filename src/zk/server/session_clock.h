#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "async/loop.h"

namespace nodepool::zk::server {

// When sessions expire: each one time-out after the last message of its client, which starts anew when this
// process could not read messages meanwhile, because it was stopped or busy. One timer per session, which is
// restarted only when it fires.
class SessionClock {
 public:
  using Expire = std::function<void(std::int64_t session)>;

  // `expire` is called on the loop; the session is no longer timed then.
  SessionClock(Loop& loop, Expire expire) : loop_(loop), expire_(std::move(expire)) {}
  ~SessionClock();
  SessionClock(const SessionClock&) = delete;
  SessionClock& operator=(const SessionClock&) = delete;

  void Start(std::int64_t session, Duration timeout);
  void Heard(std::int64_t session);
  void Stop(std::int64_t session);
  // Of a session that is timed.
  SteadyTime LastHeard(std::int64_t session) const { return timed_.at(session).heard; }

 private:
  struct Timed {
    Duration timeout;
    SteadyTime heard;
    Clock::TimerId timer;
  };

  void Arm(std::int64_t session, Timed& timed);
  void Check(std::int64_t session);

  Loop& loop_;
  Expire expire_;
  std::map<std::int64_t, Timed> timed_;
};

}  // namespace nodepool::zk::server
