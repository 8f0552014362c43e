#pragma once

#include "daemon/program.h"

namespace nodepool::daemon {

// Runs the program's parts with ZooKeeper, which may be the embedded server, until a signal
// ends that. Throws what keeps them from starting; both arguments outlive it.
Task<> RunParts(const Program& program, Runtime& runtime);

}  // namespace nodepool::daemon
