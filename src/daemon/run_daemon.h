#pragma once

#include "daemon/options.h"
#include "daemon/program.h"

namespace nodepool::daemon {

// Runs a daemon: goes into the background unless `options` say otherwise, sets up the log, and runs the parts
// until a signal. Returns the exit status; exceptions are written to standard error and to the log. Call
// while the process has one thread.
int RunDaemon(const Program& program, const Options& options);

}  // namespace nodepool::daemon
