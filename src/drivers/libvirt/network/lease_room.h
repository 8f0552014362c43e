#pragma once

#include <string>

#include "drivers/libvirt/host/host.h"

namespace nodepool::drivers::libvirt {

// What is to be said of a machine without an address where the network has none left: "network N has 253
// leases of 253 addresses ...; ". Empty: it has some, or cannot be asked.
Task<std::string> ExplainLeases(Host& host, MachineNetwork network);

}  // namespace nodepool::drivers::libvirt
