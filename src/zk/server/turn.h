#pragma once

#include <optional>

#include "async/gate.h"
#include "async/loop.h"

namespace nodepool::zk::server {

// What the turns of all clients share.
struct Turns {
  Gate gate{1};
  Duration overrun{};  // how much longer than intended the last turn was
};

// A client's right to have what it has sent at once executed. The first request needs none, unless it may
// take long; for everything else one client at a time has a turn of a few milliseconds. After a turn the loop
// does its other work, and after one that was longer it has as much time for that. So a client that sends
// little waits for one turn or two, whatever the others send.
class Turn {
 public:
  // Both outlive it.
  Turn(Loop& loop, Turns& turns) : loop_(loop), turns_(turns) {}
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
  Turns& turns_;
  Gate::Pass pass_;
  bool is_first_ = true;
  std::optional<SteadyTime> ends_;  // while it has begun
};

}  // namespace nodepool::zk::server
