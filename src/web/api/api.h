#pragma once

#include <memory>
#include <vector>

#include "launcher/launcher.h"
#include "web/lists/recent_answers.h"
#include "web/router.h"

namespace nodepool::web {

// The endpoints under /api/v1, for programs: {"nodes": [...], "is_complete": true} and likewise requests,
// images, builds, uploads, providers and components, from the launcher's caches alone. Queries select entries
// as the command line does: ?state=, ?label=, ?provider=, each repeatable and only if the entries have it,
// and ?limit=. Of nodes and requests ?after= is the next page. An unknown parameter is 400. The launcher
// outlives them.
std::vector<Endpoint> ApiEndpoints(const launcher::Launcher& launcher, std::shared_ptr<RecentAnswers> recent);

}  // namespace nodepool::web
