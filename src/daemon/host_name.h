#pragma once

#include <string>
#include <vector>

#include "base/clock.h"

// How this host is called.
namespace nodepool::daemon {

// As the operating system reports it, up to the first dot.
std::string Hostname();
// The same as it is.
std::string WholeHostname();

// What a reverse look-up of an address answers.
struct HostEntry {
  std::string canonical;
  std::vector<std::string> aliases;
};

// The first of the names that has a dot, else the canonical one.
std::string QualifiedName(const HostEntry& entry);

// What socket.getfqdn() of Python gives, which other programs write to records and metrics:
// the qualified name of the address that the host's name stands for. The host's name where
// the resolver does not know, or takes longer than `limit`. Blocks.
std::string FullyQualifiedHostname(Duration limit = std::chrono::seconds(5));

}  // namespace nodepool::daemon
