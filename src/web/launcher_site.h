#pragma once

#include <string>
#include <vector>

#include "async/loop.h"
#include "base/metrics.h"
#include "launcher/launcher.h"
#include "web/access/access.h"
#include "web/router.h"

namespace nodepool::web {

// POST /api/v1/job-events: reports a job's run, as publishers do over ZeroMQ (operations.md 13.6, D-67), and
// answers whether the node is held. Since it changes something without authentication, it is accepted from
// this host only, and, because of web pages in a browser on it, only with a JSON content type. Where jobs can
// connect from this host, too, it needs a token of scope `operate`. All of them outlive the endpoint.
Endpoint JobEventsEndpoint(Loop& loop, launcher::Launcher& launcher, Access& access);

// POST /api/v1/runners/hooks/NAME: GitHub's event `workflow_job` for the service NAME of `runners`
// (runners.md 3, 10), written down as a record, for the daemon that serves its sets. It needs no token, but
// the signature with the service's secret. After wrong ones further wrong ones of the network have to wait; a
// good one is taken all the same, since those who share a proxy with GitHub must not keep its deliveries out.
// The arguments outlive it.
Endpoint RunnerHookEndpoint(Loop& loop, launcher::Launcher& launcher);

// Whether `header` is "sha256=" and the HMAC-SHA-256 of the body with one of the secrets, in hex. Takes as
// long for every wrong one.
bool IsSignedWith(const std::vector<std::string>& secrets, const std::string& body,
                  const std::string& header);

// The endpoints of a launcher's web server. All arguments outlive them. `state_fault` says why the embedded
// server cannot write its state; empty: it can, or there is none.
//
//   the lists of lists.h
// the resources under /api/v1 (api.h), and their description, /api/v1/openapi.json
//   what pages follow (live/live.h)
//   POST /api/v1/job-events, from this host only (job_events.h)
//   deliveries of GitHub's webhooks, signed
//   requests over HTTP, with a token (requests/request_endpoints.h)
//   what operators change, with a token (actions/action_endpoints.h)
//   GET /ready            200 "OK" once every provider runs, before that 503 (D-64); also 503 for a
//                         `state_fault`; with 200 also the fault of a rejected configuration
//   GET /metrics          Prometheus' text format
std::vector<Endpoint> LauncherEndpoints(Loop& loop, launcher::Launcher& launcher,
                                        const metrics::Prometheus& prometheus, const std::string& state_fault,
                                        Access& access);

}  // namespace nodepool::web
