#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>

#include "async/task.h"

namespace nodepool::net {

// The first address of a host name; an address is returned as it is. Error(kRetry) when there is
// none. May take as long as the system's resolver does.
Task<boost::asio::ip::address> Resolve(std::string host);

}  // namespace nodepool::net
