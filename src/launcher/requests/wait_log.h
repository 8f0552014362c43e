#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/log/logging.h"
#include "sched/requests/queues.h"

namespace nodepool::launcher {

// Logs why requests wait: one line per shape of request when the deciding reason changes, not per request or
// decision, and at most one line per shape in ten seconds. Thousands of shapes at a time are counted, not
// named.
class WaitLog {
 public:
  explicit WaitLog(log::Logger logger) : logger_(std::move(logger)) {}

  // What every pool said about requests of the shape, which wait; null: none waits.
  using AnswersOf = std::function<const sched::Answers*(const sched::Shape&)>;

  // Call after each decision. `changes` are the shapes that began or ceased to wait, or wait for other
  // reasons, since the last call.
  void Report(const std::set<sched::Shape>& changes, const AnswersOf& answers_of, const sched::Queues& queues,
              SteadyTime now);

 private:
  using Decides = std::optional<std::pair<PoolKey, sched::Reason>>;
  struct Logged {
    Decides decides;  // as it was logged
    Decides now;      // as it is
    SteadyTime when{};
  };

  void Follow(const sched::Shape& shape, const sched::Answers* answers);
  void RemoveOld(SteadyTime now);
  void Log(const sched::Shape& shape, const sched::Answers& answers, const sched::Queues& queues);
  void CountUnnamed(SteadyTime now);
  static Decides DecidingOf(const sched::Answers& answers);

  log::Logger logger_;
  std::map<sched::Shape, Logged> logged_;
  std::set<std::pair<SteadyTime, sched::Shape>> idle_;  // those of `logged_` that do not wait, by their time
  std::set<sched::Shape> changed_;                      // those of `logged_` that wait for another reason now
  std::set<sched::Shape> unnamed_;                      // those that wait and are not in `logged_`
  std::optional<SteadyTime> counted_;                   // when shapes were last counted instead
};

}  // namespace nodepool::launcher
