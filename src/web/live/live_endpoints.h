#pragma once

#include <memory>
#include <vector>

#include "web/access/access.h"
#include "web/live/live.h"
#include "web/router.h"

namespace nodepool::web {

// GET /api/v1/events: changes as Server-Sent Events; /api/v1/changes: the latest, in words; /api/v1/samples:
// for charts (http.md 1). `access` outlives them.
std::vector<Endpoint> LiveEndpoints(Loop& loop, std::shared_ptr<Live> live, Access& access);

}  // namespace nodepool::web
