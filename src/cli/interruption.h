#pragma once

#include "async/task.h"

namespace nodepool::cli {

// Awaits a task that may end by an interruption: does not throw kCancelled.
Task<> UntilInterrupted(Task<> task);

}  // namespace nodepool::cli
