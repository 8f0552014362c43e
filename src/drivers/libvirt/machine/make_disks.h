#pragma once

#include "drivers/libvirt/machine/creation.h"
#include "drivers/libvirt/machine/new_domain.h"

namespace nodepool::drivers::libvirt {

// Makes the volumes of a machine: a clone of its image, its seed disks, its console log (driver-libvirt.md
// 6). What a failure leaves is removed by DeleteMachine.
Task<DomainDisks> MakeDisks(Creation& creation);

}  // namespace nodepool::drivers::libvirt
