#pragma once

#include <functional>
#include <string>

#include "async/task_group.h"

namespace nodepool::drivers::aws {

// Runs `count` tasks that make() returns, at the same time. The first that fails cancels the others; its
// error is thrown when all have ended. Everything that `make` refers to outlives the call.
Task<> RunWorkers(Loop& loop, log::Logger logger, std::string name, int count, std::function<Task<>()> make);

}  // namespace nodepool::drivers::aws
