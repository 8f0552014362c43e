#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "net/http/http.h"

namespace nodepool::web {

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string HttpDate(WallTime time);

// nullopt: the text does not have this form.
std::optional<WallTime> ParseHttpDate(const std::string& text);

// Adds the headers of every successful answer: any page may read it, and it may be cached for a second
// (operations.md 6.6).
void AddCachingHeaders(net::HttpResponse& response, WallTime computed);

}  // namespace nodepool::web
