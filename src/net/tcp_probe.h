#pragma once

#include <optional>
#include <string>
#include <vector>

#include "async/loop.h"

namespace nodepool::net {

// The first of several numeric addresses that accepts a TCP connection; nullopt when none does by
// `deadline`. They are tried in turn, for a second each at most, repeatedly.
Task<std::optional<std::string>> FirstToAccept(Loop& loop, std::vector<std::string> addresses, int port,
                                               SteadyTime deadline);

}  // namespace nodepool::net
