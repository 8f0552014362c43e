#pragma once

#include <string>
#include <vector>

#include "async/loop.h"
#include "base/metrics/prometheus.h"
#include "launcher/launcher.h"
#include "web/access/access.h"
#include "web/router.h"

namespace nodepool::web {

// The endpoints of a launcher's web server. All arguments outlive them. `state_fault` says why the embedded
// server cannot write its state; empty: it can, or there is none.
//
//   the lists of lists.h
// the resources under /api/v1 (api.h), and their description, /api/v1/openapi.json
//   what pages follow (live/live.h)
//   POST /api/v1/job-events, from this host only (job_events.h)
//   deliveries of GitHub's webhooks, signed (runner_hooks.h)
//   requests over HTTP, with a token (requests/request_endpoints.h)
//   what operators change, with a token (actions/action_endpoints.h)
//   GET /ready            200 "OK" once every provider runs, before that 503 (D-64); also 503 for a
//                         `state_fault`; with 200 also the fault of a rejected configuration
//   GET /metrics          Prometheus' text format
std::vector<Endpoint> LauncherEndpoints(Loop& loop, launcher::Launcher& launcher,
                                        const metrics::Prometheus& prometheus, const std::string& state_fault,
                                        Access& access);

}  // namespace nodepool::web
