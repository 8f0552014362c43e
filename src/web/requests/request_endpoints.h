#pragma once

#include <vector>

#include "async/loop.h"
#include "launcher/launcher.h"
#include "web/access/access.h"
#include "web/router.h"

namespace nodepool::web {

// Requests over HTTP (http-requests.md 3). All arguments outlive them.
std::vector<Endpoint> RequestEndpoints(Loop& loop, launcher::Launcher& launcher, Access& access);

}  // namespace nodepool::web
