#pragma once

#include <vector>

#include "async/loop.h"
#include "base/metrics/prometheus.h"
#include "launcher/launcher.h"
#include "web/router.h"

namespace nodepool::web {

// What the web server of a launcher offers. All arguments outlive the endpoints.
//
//   the lists of lists.h
//   what stands under /api/v1 (api.h), and its description, /api/v1/openapi.json
//   POST /api/v1/job-events, from this host only (job_events.h)
//   GET /ready            200 "OK" once every provider runs, before that 503 (D-64)
//   GET /metrics          Prometheus' text format
std::vector<Endpoint> LauncherEndpoints(Loop& loop, launcher::Launcher& launcher,
                                        const metrics::Prometheus& prometheus);

}  // namespace nodepool::web
