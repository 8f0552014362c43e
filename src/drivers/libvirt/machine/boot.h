#pragma once

#include "drivers/libvirt/machine/creation.h"
#include "drivers/libvirt/machine/new_domain.h"

namespace nodepool::drivers::libvirt {

// The machine with these disks, as its label and its host want it.
NewDomain DescribeOnHost(const Creation& creation, DomainDisks disks);

// Starts the machine, unless it runs.
Task<> Boot(Creation& creation, DomainDisks disks);

}  // namespace nodepool::drivers::libvirt
