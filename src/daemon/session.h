#pragma once

#include "daemon/program.h"

namespace nodepool::daemon {

// Runs the program's parts with ZooKeeper, which may be the embedded server, until a signal. Throws if they
// cannot start; both arguments outlive it.
Task<> RunParts(const Program& program, Runtime& runtime);

}  // namespace nodepool::daemon
