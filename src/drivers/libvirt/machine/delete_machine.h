#pragma once

#include "drivers/libvirt/host/site.h"

namespace nodepool::drivers::libvirt {

// Ends the machine at once and deletes its volumes, without regard to what the process notes about it.
Task<> RemoveMachine(Site& site, MachineId id);

// Ends the machine at once and deletes its volumes, at any stage of its creation and any number of times.
// Waits for what a cancelled creation has under way. Error(kRetry): its host cannot be reached.
Task<> DeleteMachine(Site& site, MachineId id);

// The names of a machine's volumes that the host has.
Task<std::vector<std::string>> FindVolumes(Site& site, MachineId id);

}  // namespace nodepool::drivers::libvirt
