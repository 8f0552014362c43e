#pragma once

#include <vector>

#include "model/node_request.h"
#include "sched/requests/assign.h"

namespace nodepool::sched {

// Writes into the request's record that these pool workers decline it. It fails when all registered
// pools have declined; else it is `requested`, for the others (launcher.md 9.2, 9.3).
void Decline(NodeRequest& request, const std::vector<LauncherId>& decliners, const Registry& registry,
             WallTime now);

}  // namespace nodepool::sched
