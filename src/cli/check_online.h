#pragma once

#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// The online part of `nodepool config-validate`: awaits `connect`, which connects to the ZooKeeper `servers`,
// and checks each provider of the configuration. Logs one line for each of them. Status 1 if anything is
// wrong.
Task<int> CheckOnline(Context& context, std::string servers, Task<> connect);

}  // namespace nodepool::cli
