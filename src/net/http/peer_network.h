#pragma once

#include <string>

namespace nodepool::net {

// What a client can choose its addresses from: of an IPv6 address the first 64 bits, else all of it. Limits
// for a client count by it.
std::string NetworkOf(const std::string& address);

}  // namespace nodepool::net
