#pragma once

#include <optional>
#include <string>

#include "drivers/libvirt/machine/creation.h"
#include "drivers/libvirt/machine/new_domain.h"

namespace nodepool::drivers::libvirt {

// The machine with these disks, as its label and its host want it.
NewDomain DescribeOnHost(const Creation& creation, DomainDisks disks);

// Starts the machine, and from then on has its host note whether it ends. Returns the port of the host that
// is forwarded to it; none: it has an address of its own.
Task<std::optional<int>> Boot(Creation& creation, DomainDisks disks);

}  // namespace nodepool::drivers::libvirt
