#pragma once

#include <functional>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "base/log/logging.h"

namespace nodepool {

// Evaluates its surroundings whenever something changed or a time has come that the evaluation
// chose: the loop of a worker that decides and starts tasks.
//
//   WakeLoop scheduling_{loop, "requests or nodes", {.settle = 10ms}, [this] { return RunOnce(); }, logger};
//   tasks_.Spawn("schedule", scheduling_.Run());
//   cache.OnChange([this] { scheduling_.Wake(); });
class WakeLoop {
 public:
  struct Pace {
    Duration settle{0};                  // the least time between two evaluations: answers a burst once
    Duration longest = Duration::max();  // the longest time between two evaluations
  };
  // Runs on the loop, never inside Wake(). Returns when it is due again at the latest;
  // SteadyTime::max(): only when something changes. What it throws is logged.
  using Evaluate = std::function<SteadyTime()>;

  // `subject`, a literal, says in a task dump a change of what is awaited.
  WakeLoop(Loop& loop, const char* subject, Pace pace, Evaluate evaluate, log::Logger logger);

  // Something changed: evaluates soon.
  void Wake() { wake_.Set(); }

  // The loop. Begins with an evaluation; ends when it is cancelled.
  Task<> Run();

 private:
  SteadyTime EvaluateGuarded();

  Loop& loop_;
  const char* subject_;
  Pace pace_;
  Evaluate evaluate_;
  log::Logger logger_;
  Event wake_;
};

}  // namespace nodepool
