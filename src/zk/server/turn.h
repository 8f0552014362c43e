#pragma once

#include "async/gate.h"
#include "async/loop.h"

namespace nodepool::zk::server {

// A client's right to have what it has sent at once executed. The first request needs none, unless it may take
// long; for everything else one client at a time has a turn of a few milliseconds, and between two turns the
// loop does its other work. So a client that sends little waits for one turn at most, whatever the others send.
class Turn {
 public:
  // Both outlive it. `gate` has one place, which all clients share.
  Turn(Loop& loop, Gate& gate) : loop_(loop), gate_(gate) {}

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
  SteadyTime ends_ = SteadyTime::min();
};

}  // namespace nodepool::zk::server
