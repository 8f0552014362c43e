#pragma once

#include "daemon/options.h"
#include "daemon/program.h"

namespace nodepool::daemon {

// The whole life of a daemon: in the background unless `options` want the foreground, its log
// set up, its parts run until a signal. Returns the exit status: what is thrown is written to
// standard error and to the log. To be called while the process has one thread.
int RunDaemon(const Program& program, const Options& options);

}  // namespace nodepool::daemon
