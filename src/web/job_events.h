#pragma once

#include "async/loop.h"
#include "launcher/launcher.h"
#include "web/access/access.h"
#include "web/router.h"

namespace nodepool::web {

// POST /api/v1/job-events: reports a job's run, as publishers do over ZeroMQ (operations.md 13.6, D-67), and
// answers whether the node is held. Since it changes something without authentication, it is accepted from
// this host only, and, because of web pages in a browser on it, only with a JSON content type. Where jobs can
// connect from this host, too, it needs a token of scope `operate`. All of them outlive the endpoint.
Endpoint JobEventsEndpoint(Loop& loop, launcher::Launcher& launcher, Access& access);

}  // namespace nodepool::web
