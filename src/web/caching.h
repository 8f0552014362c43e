#pragma once

#include <string>

#include "base/clock.h"
#include "net/http/http.h"

namespace nodepool::web {

// Adds the headers of every successful answer: any page may read it, and it may be cached for a second
// (operations.md 6.6).
void AddCachingHeaders(net::HttpResponse& response, WallTime computed);

}  // namespace nodepool::web
