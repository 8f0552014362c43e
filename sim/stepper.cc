#include "sim/stepper.h"

#include <boost/asio/post.hpp>

namespace nodepool::sim {

bool Stepper::RunOne() {
  loop_.context().restart();
  if (loop_.context().poll_one() == 0) return false;
  ++steps_;
  if (after_each_) after_each_();
  return true;
}

bool Stepper::PassTime(SteadyTime end) {
  if (!clock_.has_timers() || clock_.next_timer() > end) {
    clock_.AdvanceTo(end);
    return false;
  }
  // Timers run in the loop, as in the program.
  SteadyTime when = clock_.next_timer();
  boost::asio::post(loop_.context(), [this, when] { clock_.AdvanceTo(when); });
  return true;
}

}  // namespace nodepool::sim
