#pragma once

#include <optional>

#include "async/attempt.h"
#include "async/event.h"
#include "daemon/runtime.h"

namespace nodepool::daemon {

// How a daemon ends.
struct Ending {
  Event reached;
  bool is_immediate = false;
  std::optional<Failure> failure;  // why it could not start
};

// Call while the process has one thread.
void PrepareSignals();

// SIGINT and SIGUSR1 end the daemon gracefully, SIGTERM at once.
Task<> AwaitSignal(Runtime& runtime, Ending& ending);

// SIGHUP: reads the configuration again even if no file has changed, and reopens log files.
Task<> AwaitReload(Runtime& runtime);

}  // namespace nodepool::daemon
