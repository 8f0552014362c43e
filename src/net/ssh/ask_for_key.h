#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>
#include <vector>

#include "async/blocking_pool.h"
#include "net/ssh/key_exchange.h"

namespace nodepool::net {

// What one connection to an SSH server has shown.
struct KeyAnswer {
  std::optional<HostKey> key;  // none: the server has no key for the algorithm
  // Host key algorithms that the server offers; nullopt: not known.
  std::optional<std::vector<std::string>> offered;
};

// Connects and exchanges keys up to the moment when the host key is known. `algorithm` is the only host key
// algorithm that is accepted; empty: any. Waits without limit; arithmetic is done on the pool. Throws when
// the server cannot be reached, is not an SSH server or hangs up.
Task<KeyAnswer> AskForKey(BlockingPool& pool, boost::asio::ip::tcp::endpoint machine, std::string algorithm);

}  // namespace nodepool::net
