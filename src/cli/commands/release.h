#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool release [REQUEST-or-NODE...]`: gives back what `nodepool request` got, in this terminal or
// another; without names, everything that requests of `context.user` got, after a confirmation if that is
// more than one request (MayChange() in cli/confirmation.h). A request that is still waiting is withdrawn.
// Nodes become `used`, and are then deleted. Requests and nodes of other clients are refused. Status 1 if
// anything was not released.
Task<int> Release(Context& context, std::vector<std::string> names, bool is_confirmed = false);

}  // namespace nodepool::cli
