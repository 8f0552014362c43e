#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <vector>

#include "async/loop.h"
#include "base/random.h"
#include "zk/wire/wire_client.h"

namespace nodepool::zk {

// All addresses of all servers, in random order (coordination.md 2.4). Names that
// cannot be resolved are left out and named, with the reason, in `problems`.
Task<std::vector<boost::asio::ip::tcp::endpoint>> ResolveServers(Loop& loop, Random& random,
                                                                 std::vector<HostPort> servers,
                                                                 std::vector<std::string>& problems);

}  // namespace nodepool::zk
