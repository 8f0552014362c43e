#pragma once

#include "web/router.h"

namespace nodepool::web {

// Whether the client may read records: everybody may. It is the one place that decides; what only shows
// records asks it (http.md PAGE-9). The Host of a request does not count, since proxies serve the page under
// names of their own, and any page may read the lists already (operations.md 6.6).
inline bool MayRead(const Request&) { return true; }

}  // namespace nodepool::web
