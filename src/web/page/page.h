#pragma once

#include <vector>

#include "web/router.h"

namespace nodepool::web {

// The page for a browser: GET / is its HTML, GET /assets/<name> what it needs. All its URLs are relative, so
// that it works behind any path prefix of a proxy (http.md PAGE-7).
std::vector<Endpoint> PageEndpoints();

}  // namespace nodepool::web
