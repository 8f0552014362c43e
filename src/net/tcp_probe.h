#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>
#include <vector>

#include "async/loop.h"
#include "async/task.h"

namespace nodepool::net {

// Ends when the machine has accepted a connection, which is closed at once. Throws when it does not.
Task<> Connect(boost::asio::ip::tcp::endpoint machine);

// The first of several numeric addresses that accepts a TCP connection; nullopt when none does by
// `deadline`. They are tried in turn, for a second each at most, repeatedly.
Task<std::optional<std::string>> FirstToAccept(Loop& loop, std::vector<std::string> addresses, int port,
                                               SteadyTime deadline);

// The first address of a host name; an address is returned as it is. Error(kRetry) when there is
// none. May take as long as the system's resolver does.
Task<boost::asio::ip::address> Resolve(std::string host);

}  // namespace nodepool::net
