#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log/logging.h"
#include "sched/requests/assign.h"

namespace nodepool::launcher {

// Logs why requests wait: a line for each shape of requests when the reasons change,
// not for each request or decision, and never more than one in ten seconds for a
// shape.
class WaitLog {
 public:
  explicit WaitLog(log::Logger logger) : logger_(std::move(logger)) {}

  // After each decision: what every pool said, by shape.
  void Tell(const std::map<sched::Shape, sched::Answers>& waiting, const sched::Queues& queues,
            SteadyTime now);

 private:
  using Reasons = std::vector<std::pair<PoolKey, sched::Reason>>;
  struct Told {
    Reasons reasons;
    SteadyTime when{};
  };

  log::Logger logger_;
  std::map<sched::Shape, Told> told_;
};

}  // namespace nodepool::launcher
