#pragma once

#include "drivers/libvirt/machine/creation.h"
#include "drivers/libvirt/machine/new_domain.h"

namespace nodepool::drivers::libvirt {

// Makes the volumes of a machine: a clone of its image, its seed disks, its console log (driver-libvirt.md
// 6). What a failure leaves is removed by DeleteMachine.
Task<DomainDisks> MakeDisks(Creation& creation);

// Makes one of them; returns its path.
Task<std::string> MakeVolume(Creation& creation, NewVolume volume);
Task<std::string> MakeConsole(Creation& creation);

// The public keys that the machine gets.
std::vector<std::string> KeysFor(const Creation& creation);

}  // namespace nodepool::drivers::libvirt
