#pragma once

#include <string>
#include <vector>

#include "launcher/launcher.h"
#include "web/access/token_verifier.h"
#include "web/router.h"

namespace nodepool::web {

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

}  // namespace nodepool::web
