#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log/logging.h"
#include "sched/requests/assign.h"

namespace nodepool::launcher {

// Logs why requests wait: one line per shape of request when the deciding reason changes, not per request or
// decision, and at most one line per shape in ten seconds. Thousands of shapes at a time are counted, not
// named.
class WaitLog {
 public:
  explicit WaitLog(log::Logger logger) : logger_(std::move(logger)) {}

  // Call after each decision. `waiting` is what every pool said, by shape.
  void Report(const std::map<sched::Shape, sched::Answers>& waiting, const sched::Queues& queues,
              SteadyTime now);

 private:
  struct Logged {
    std::optional<std::pair<PoolKey, sched::Reason>> decides;
    SteadyTime when{};
  };

  log::Logger logger_;
  std::map<sched::Shape, Logged> logged_;
  std::optional<SteadyTime> counted_;  // when shapes were last counted instead
};

}  // namespace nodepool::launcher
