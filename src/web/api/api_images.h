#pragma once

#include "launcher/launcher.h"
#include "web/router.h"

namespace nodepool::web {

// GET /api/v1/images/{image}/builds/{build}/log: the last 64 KiB of a build's log, where this process can
// read it; else 404 with the host and the file. Only builds that have a record have a log, and the file is
// named by the record. The launcher outlives it.
Endpoint BuildLogEndpoint(const launcher::Launcher& launcher);

}  // namespace nodepool::web
