#pragma once

#include <optional>

#include "async/attempt.h"
#include "async/event.h"
#include "daemon/runtime.h"

namespace nodepool::daemon {

// How a daemon comes to its end.
struct Ending {
  Event reached;
  bool is_immediate = false;
  std::optional<Failure> failure;  // it could not start
};

// To be called while the process has one thread.
void PrepareSignals();

// SIGINT and SIGUSR1 end it gracefully, SIGTERM at once.
Task<> AwaitSignal(Runtime& runtime, Ending& ending);

// SIGHUP: reads the configuration again though no file changed, and opens log files anew.
Task<> AwaitReload(Runtime& runtime);

}  // namespace nodepool::daemon
