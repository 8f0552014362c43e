#pragma once

#include <string>

#include "async/task_registry.h"

namespace nodepool::debug {

// The running tasks, one line each, oldest first: name, what it is about, age. With us
// a task is the thing that hangs, not a thread.
std::string DescribeTasks(const TaskRegistry& tasks, SteadyTime now);

}  // namespace nodepool::debug
