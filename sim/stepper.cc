#include "sim/stepper.h"

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
  clock_.AdvanceTo(clock_.next_timer());
  return true;
}

}  // namespace nodepool::sim
