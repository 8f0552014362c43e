#pragma once

#include <string>
#include <vector>

#include "model/node_request.h"
#include "sched/requests/registry.h"

namespace nodepool::sched {

// A pool worker that declines a request.
struct Decliner {
  LauncherId launcher;
  std::string reason;  // for operators, with the names of provider and pool
};

// Writes into the request's record that these pool workers decline it. Its state becomes `failed`
// when all registered pools have declined; otherwise it is `requested`, for other launchers
// (launcher.md 9.2, 9.3).
void Decline(NodeRequest& request, const std::vector<Decliner>& decliners, const Registry& registry,
             WallTime now);

}  // namespace nodepool::sched
