#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "base/log/logging.h"

namespace nodepool {

// Runs an evaluation after each change, or at a time that the last evaluation chose: the loop of a
// worker that decides and starts tasks.
//
//   WakeLoop scheduling_{loop, "requests or nodes", {.settle = 10ms}, [this] { return RunOnce(); }, logger};
//   tasks_.Spawn("schedule", scheduling_.Run());
//   cache.OnChange([this] { scheduling_.Wake(); });
class WakeLoop {
 public:
  struct Pace {
    Duration settle{0};  // the minimum time between two evaluations: one for a burst of changes
    Duration longest = Duration::max();  // the maximum time between two evaluations
  };
  // Runs on the loop, never inside Wake(). Returns when it is due again at the latest;
  // SteadyTime::max(): only after a change. What it throws is logged.
  using Evaluate = std::function<SteadyTime()>;

  // `subject`, a literal, says in a task dump whose change is awaited.
  WakeLoop(Loop& loop, const char* subject, Pace pace, Evaluate evaluate, log::Logger logger);

  // Something changed: evaluates soon.
  void Wake() { wake_.Set(); }

  // The loop. Begins with an evaluation; ends when it is cancelled.
  Task<> Run();

  // How often it has evaluated.
  std::uint64_t count() const { return count_; }

 private:
  SteadyTime EvaluateGuarded();

  Loop& loop_;
  const char* subject_;
  Pace pace_;
  Evaluate evaluate_;
  log::Logger logger_;
  Event wake_;
  std::uint64_t count_ = 0;
};

}  // namespace nodepool
