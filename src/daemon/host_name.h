#pragma once

#include <string>
#include <vector>

#include "base/clock.h"

// Names of this host.
namespace nodepool::daemon {

// The operating system's host name up to the first dot.
std::string Hostname();
// The operating system's host name.
std::string WholeHostname();

// The answer to a reverse look-up of an address.
struct HostEntry {
  std::string canonical;
  std::vector<std::string> aliases;
};

// The first name with a dot, else the canonical one.
std::string QualifiedName(const HostEntry& entry);

// The same as socket.getfqdn() of Python, which other programs write to records and metrics: the qualified
// name of the host name's address. Returns the host name if the resolver does not know it or takes longer
// than `limit`. Blocks.
std::string FullyQualifiedHostname(Duration limit = std::chrono::seconds(5));

}  // namespace nodepool::daemon
