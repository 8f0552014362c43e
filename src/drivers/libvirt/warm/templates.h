#pragma once

#include <string>
#include <vector>

#include "drivers/libvirt/host/site.h"
#include "drivers/libvirt/machine/create_machine.h"
#include "drivers/libvirt/storage/boot_image.h"

namespace nodepool::drivers::libvirt {

// Boots the template that the machine may be started from, and saves its memory: afterwards its volumes are
// there, and it does not run. It is complete, or nothing of it is left.
Task<> MakeTemplate(Creation& machine, const MachineId& id);

// Of a template that runs, i.e. is being made: seconds since 1970. 0: not a template.
std::int64_t MakingSince(const DomainInfo& domain);

// A template that has run for so long is what a process has left.
inline constexpr std::chrono::minutes kMostOfMaking{20};

// The template from whose saved memory such a machine may be started on its host. Its UUID is made of
// everything that the memory depends on: what the label says, the image, and how the host runs machines. So
// every process finds the same one, and a change of any of these leads to another one.
MachineId TemplateFor(const Creation& creation, const BootImage& image);

// Whether the volume belongs to a template.
bool IsOfTemplate(const MachineVolume& volume);

// Deletes the templates on the image in this volume from which no machine runs.
Task<> DeleteTemplatesOn(Host& host, std::string image);

// Deletes the provider's templates that were used last a day ago or before, and what an interrupted making
// has left. One that machines run from stays. `volumes` and `domains` are all that the host has.
Task<> DeleteUnusedTemplates(WallTime now, const std::string& provider, Host& host,
                             const std::vector<VolumeInfo>& volumes, const std::vector<DomainInfo>& domains);

}  // namespace nodepool::drivers::libvirt
