#pragma once

#include <string>

#include "base/clock.h"
#include "net/http/http.h"

namespace nodepool::web {

// Adds what every good answer carries: results may be shown to any page and kept for
// a second (operations.md 6.6).
void AddCachingHeaders(net::HttpResponse& response, WallTime computed);

}  // namespace nodepool::web
