#pragma once

#include <map>
#include <string>

#include "base/clock.h"

namespace nodepool::driver::cloud::api {

// The part of the configured rate at which a service can be called: it halves when the service shows that it
// is overloaded, and grows by 2 % of the configured rate each second, up to all of it. Evidence from calls
// that were sent before the last change counts once. Pure: times are the caller's.
class RateShare {
 public:
  // `least`: refusals make it no smaller; from more than 0 to 1.
  RateShare(double least, SteadyTime now) : least_(least), changed_at_(now - Duration(1)) {}

  // The service refused a call because there were too many.
  void Refused(SteadyTime sent, SteadyTime now) { Halve(least_, sent, now); }

  // The connection failed or broke, or the time was up. Not below an eighth: a lower rate does not mend a
  // network, and what waits shall go on soon after.
  void Unanswered(SteadyTime sent, SteadyTime now);

  // There was an answer. True: the third in a row that took more than four times as long as answers of this
  // call usually do, and a second longer, which halves the share as well.
  bool Answered(const std::string& call, SteadyTime sent, SteadyTime now);

  double At(SteadyTime now) const;

 private:
  // How long answers of a call take: about the median.
  struct Usual {
    double seconds = 0;
    int answers = 0;
  };

  void Halve(double least, SteadyTime sent, SteadyTime now);
  bool IsSlow(const std::string& call, double seconds);

  double least_;
  double share_ = 1;  // at the last change
  SteadyTime changed_at_;
  std::map<std::string, Usual> usual_;  // by call
  int slow_in_a_row_ = 0;
};

}  // namespace nodepool::driver::cloud::api
