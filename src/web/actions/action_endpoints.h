#pragma once

#include <vector>

#include "async/loop.h"
#include "launcher/launcher.h"
#include "web/access/access.h"
#include "web/router.h"

namespace nodepool::web {

// What operators change over HTTP with a token of the scope `operate` (http-actions.md 2), each by the same
// function as the command line. All arguments outlive them.
std::vector<Endpoint> ActionEndpoints(Loop& loop, launcher::Launcher& launcher, Access& access);

}  // namespace nodepool::web
