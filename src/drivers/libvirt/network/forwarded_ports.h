#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/error.h"

namespace nodepool::drivers::libvirt {

// Metadata of a domain: the port of its host at which it is reached.
inline constexpr const char* kPortKey = "nodepool_port";

// The lowest of a host's ports for machines, 22000 to 22999, that is not taken; none: all are.
std::optional<int> FreePort(const std::set<int>& taken);

// Whether a machine could not be started since something else has its port.
bool IsPortTaken(const Error& error);

// Where a host binds forwarded ports that are reached at `address`; "": at all of its addresses.
std::string BindAddress(const std::string& address);

}  // namespace nodepool::drivers::libvirt
