#pragma once

#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// The part of `nodepool config-validate` that asks: awaits `connect`, which connects to the
// ZooKeeper `servers`, and asks each provider of the configuration what is wrong with it. One line
// of the log for each of them. Status 1 when anything is wrong.
Task<int> CheckOnline(Context& context, std::string servers, Task<> connect);

}  // namespace nodepool::cli
