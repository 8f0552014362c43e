#pragma once

#include <exception>

#include "async/event.h"
#include "async/loop.h"
#include "cli/daemon_options.h"
#include "driver/config_follower.h"

namespace nodepool {

// By the file that -l names, else to standard output, with the level that -d asks for.
// Error(kInvalid) that begins with the file.
void SetUpLogging(const cli::DaemonOptions& options);

// How a daemon comes to its end.
struct Ending {
  Event reached;
  bool is_immediate = false;
  std::exception_ptr error;  // it could not start

  void Fail(std::exception_ptr fault) {
    error = std::move(fault);
    reached.Set();
  }
};

// SIGINT and SIGUSR1 end it gracefully, SIGTERM at once.
Task<> AwaitSignal(Loop& loop, Ending& ending);

// SIGHUP: read the configuration again though no file changed, and open log files anew.
Task<> AwaitReload(Loop& loop, driver::ConfigFollower& follower);

}  // namespace nodepool
