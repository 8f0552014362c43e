#pragma once

#include <string>

#include "async/loop.h"
#include "net/http.h"

namespace nodepool::net {

// Fetches http://<host>:<port><target>. Error(kRetry) or Error(kTimedOut) when there is
// no whole answer of at most `max_bytes` within `limit`.
Task<HttpResponse> HttpGet(Loop& loop, std::string host, int port, std::string target, Duration limit,
                           std::size_t max_bytes);

}  // namespace nodepool::net
