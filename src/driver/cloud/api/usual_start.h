#pragma once

#include <deque>
#include <optional>

#include "base/clock.h"

namespace nodepool::driver::cloud::api {

// When a list is worth reading again for a machine that starts, learned from how long the last ones took:
// seldom while it cannot have started yet, often when it is about to, with the readings that were saved until
// then. So the calls are no more than with a reading after each pause. Pure: times are the caller's.
class UsualStart {
 public:
  // `pause`: between readings while nothing is known, more than 0.
  explicit UsualStart(Duration pause) : pause_(pause) {}

  // A machine has started, so long after its creation was accepted.
  void Started(Duration took);
  // The list is read, so long after the reading before.
  void Reading(Duration after);
  // The pause until the next reading for a machine whose creation was accepted `age` ago.
  Duration PauseAt(Duration age) const;

 private:
  struct Window {
    Duration from;
    Duration to;
  };
  // When a machine is expected to have started; none: fewer than three are known.
  std::optional<Window> Expected() const;

  Duration pause_;
  std::deque<Duration> took_;  // the last ones
  double saved_ = 0;           // readings
};

}  // namespace nodepool::driver::cloud::api
