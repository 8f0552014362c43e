#pragma once

#include <string>
#include <utility>

#include "async/attempt.h"
#include "async/deadline.h"

namespace nodepool {

// The steps in which a daemon stops, one after the other. Each ends by the deadline; what fails or takes
// longer is logged and left behind.
class StopSteps {
 public:
  StopSteps(Loop& loop, log::Logger logger, SteadyTime deadline)
      : loop_(loop), logger_(std::move(logger)), deadline_(deadline) {}

  // `what` names the step for the log, as in "ending statistics".
  Task<> Do(std::string what, Task<> step) { return DoBy(deadline_, std::move(what), std::move(step)); }
  // The same with an earlier deadline.
  Task<> DoBy(SteadyTime deadline, std::string what, Task<> step) {
    Outcome<> ended = co_await Attempt(WithDeadline(loop_, deadline, what, std::move(step)));
    if (!ended) logger_.Warning("Stopping: {}", ended.error().message());
  }

 private:
  Loop& loop_;
  log::Logger logger_;
  SteadyTime deadline_;
};

}  // namespace nodepool
