#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool release [REQUEST-or-NODE...]`: without names, gives back all that requests of
// `context.user` got. Gives back what `nodepool request` got, here
// or in a terminal elsewhere. A request that is still waiting is withdrawn. Nodes end
// as `used`, to be deleted. Things of other clients are refused. Status 1 when
// something named was not released.
Task<int> Release(Context& context, std::vector<std::string> names);

}  // namespace nodepool::cli
