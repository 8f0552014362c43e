#pragma once

#include <memory>
#include <vector>

#include "launcher/launcher.h"
#include "web/lists/recent_answers.h"
#include "web/router.h"

namespace nodepool::web {

// The lists of operations.md 6: /image-list, /dib-image-list, /image-status, /node-list,
// /request-list and /label-list, as text or JSON, from the launcher's caches alone. What
// was made for a question is given again for a second. The launcher outlives them.
std::vector<Endpoint> ListEndpoints(const launcher::Launcher& launcher,
                                    std::shared_ptr<RecentAnswers> recent);

}  // namespace nodepool::web
