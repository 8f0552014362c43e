#pragma once

#include "async/loop.h"
#include "launcher/launcher.h"
#include "web/router.h"

namespace nodepool::web {

// POST /api/v1/job-events: tells of a job's run, as publishers do over ZeroMQ (operations.md
// 13.6, D-67), and answers what becomes of the node. Since it changes something and asks for no
// password it is for this host only, and, because of web pages that a browser shows there, only
// for bodies that say that they are JSON.
Endpoint JobEventsEndpoint(Loop& loop, launcher::Launcher& launcher);

}  // namespace nodepool::web
