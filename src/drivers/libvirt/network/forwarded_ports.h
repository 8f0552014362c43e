#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"

namespace nodepool::drivers::libvirt {

// Metadata of a domain: the port of its host at which it is reached.
inline constexpr const char* kPortKey = "nodepool_port";

// One of a host's ports for machines, 22000 to 22999, that is not taken; none: all are. Any of them, since
// ports that another program has are often neighbours.
std::optional<int> FreePort(const std::set<int>& taken, Random& random);

// Ports of a host that something else has had: left out for a while by all machines.
class RefusedPorts {
 public:
  void Add(int port, SteadyTime now);
  std::set<int> At(SteadyTime now);

 private:
  std::map<int, SteadyTime> until_;
};

// Whether a machine could not be started since something else has its port.
bool IsPortTaken(const Error& error);

// Where a host binds forwarded ports that are reached at `address`; "": at all of its addresses.
std::string BindAddress(const std::string& address);

}  // namespace nodepool::drivers::libvirt
