#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "net/http/http.h"

namespace nodepool::web {

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string HttpDate(WallTime time);

// Nothing when it is not written so.
std::optional<WallTime> ParseHttpDate(const std::string& text);

// Adds what every good answer carries: results may be shown to any page and kept for
// a second (operations.md 6.6).
void AddCachingHeaders(net::HttpResponse& response, WallTime computed);

}  // namespace nodepool::web
