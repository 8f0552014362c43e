#pragma once

#include "async/loop.h"
#include "launcher/launcher.h"
#include "web/router.h"

namespace nodepool::web {

// The lists of operations.md 6: /image-list, /dib-image-list, /image-status, /node-list,
// /request-list and /label-list, as text or JSON, from the launcher's caches alone. What
// was made for a question is given again for a second. Both arguments outlive them.
std::vector<Endpoint> ListEndpoints(Loop& loop, const launcher::Launcher& launcher);

}  // namespace nodepool::web
