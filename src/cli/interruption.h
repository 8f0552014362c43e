#pragma once

#include "async/task.h"

namespace nodepool::cli {

// Awaits a task for which an interruption is a good end: does not throw kCancelled.
Task<> UntilInterrupted(Task<> task);

}  // namespace nodepool::cli
