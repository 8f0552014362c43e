#pragma once

#include <optional>

#include "async/gate.h"
#include "async/loop.h"

namespace nodepool::zk::server {

// A client's right to have what it has sent at once executed. The first request needs none, unless it may
// take long; for everything else one client at a time has a turn of a few milliseconds, after which the loop
// does what else it has to do. So a client that sends little waits for one turn, whatever the others send.
class Turn {
 public:
  // `gate` lets one turn at a time pass. Both outlive it.
  Turn(Loop& loop, Gate& gate) : loop_(loop), gate_(gate) {}
  ~Turn() { End(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Before each request; `is_long`: it may take long. False: it has to wait with Begin().
  bool Covers(bool is_long);
  Task<> Begin();
  // Lets others have their turns, e.g. before a wait.
  void End();

 private:
  Loop& loop_;
  Gate& gate_;
  Gate::Pass pass_;
  bool is_first_ = true;
  std::optional<SteadyTime> ends_;  // while it has begun
};

}  // namespace nodepool::zk::server
