#pragma once

#include <exception>

#include "async/event.h"
#include "async/loop.h"
#include "driver/config_follower.h"

namespace nodepool {

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

// SIGHUP: read the configuration again though no file changed.
Task<> AwaitReload(Loop& loop, driver::ConfigFollower& follower);

}  // namespace nodepool
