#include "async/reconciler.h"

#include <algorithm>

#include "async/deadline.h"

namespace nodepool {

WakeLoop::WakeLoop(Loop& loop, const char* subject, Pace pace, Evaluate evaluate, log::Logger logger)
    : loop_(loop),
      subject_(subject),
      pace_(pace),
      evaluate_(std::move(evaluate)),
      logger_(std::move(logger)),
      wake_(subject) {}

Task<> WakeLoop::Run() {
  while (true) {
    wake_.Reset();
    SteadyTime due = EvaluateGuarded();
    if (due == SteadyTime::max()) {
      co_await wake_.Wait();
    } else {
      co_await EndsBy(loop_, due, subject_, wake_.Wait());
    }
    if (pace_.settle > Duration(0)) co_await loop_.SleepFor(pace_.settle);
  }
}

SteadyTime WakeLoop::EvaluateGuarded() {
  ++count_;
  SteadyTime latest = SteadyTime::max();
  if (pace_.longest != Duration::max()) latest = loop_.SteadyNow() + pace_.longest;
  try {
    return std::min(evaluate_(), latest);
  } catch (const std::exception& error) {
    logger_.Error("Evaluating a change of {} failed: {}", subject_, error.what());
  }
  return latest;
}

}  // namespace nodepool
