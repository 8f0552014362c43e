#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>
#include <vector>

#include "async/loop.h"

namespace nodepool::net {

// Ends when the machine has accepted a connection, which is closed at once. Throws when it does not.
Task<> Connect(boost::asio::ip::tcp::endpoint machine);

// The first of several numeric addresses that accepts a TCP connection; nullopt when none does by
// `deadline`. They are tried in turn, for a second each at most, repeatedly.
Task<std::optional<std::string>> FirstToAccept(Loop& loop, std::vector<std::string> addresses, int port,
                                               SteadyTime deadline);

}  // namespace nodepool::net
