#pragma once

#include <string>

#include "async/task_registry.h"

namespace nodepool::debug {

// The running tasks, one line each, oldest first: name, subject, age. In this program tasks hang,
// not threads.
std::string DescribeTasks(const TaskRegistry& tasks, SteadyTime now);

}  // namespace nodepool::debug
