#pragma once

#include <memory>
#include <vector>

#include "launcher/launcher.h"
#include "web/lists/recent_answers.h"
#include "web/router.h"

namespace nodepool::web {

// The lists of operations.md 6: /image-list, /dib-image-list, /image-status, /node-list,
// /request-list and /label-list, as text or JSON, from the launcher's caches alone. The answer to a query is
// cached for a second; a list of more nodes than `kept_nodes` is made as it is sent. The launcher outlives
// them.
std::vector<Endpoint> ListEndpoints(Loop& loop, const launcher::Launcher& launcher,
                                    std::shared_ptr<RecentAnswers> recent, std::size_t kept_nodes = 50'000);

}  // namespace nodepool::web
