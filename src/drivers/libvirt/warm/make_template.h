#pragma once

#include "drivers/libvirt/machine/creation.h"

namespace nodepool::drivers::libvirt {

// Boots the template that the machine may be started from, and saves its memory: afterwards its volumes are
// there, and it does not run. It is complete, or nothing of it is left.
Task<> MakeTemplate(Creation& machine, const MachineId& id);

// Of a template that runs, i.e. is being made: seconds since 1970. 0: not a template.
std::int64_t MakingSince(const DomainInfo& domain);

// A template that has run for so long is what a process has left.
inline constexpr std::chrono::minutes kMostOfMaking{20};

}  // namespace nodepool::drivers::libvirt
