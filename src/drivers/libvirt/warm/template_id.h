#pragma once

#include "drivers/libvirt/machine/creation.h"
#include "drivers/libvirt/storage/boot_image.h"

namespace nodepool::drivers::libvirt {

// The template from whose saved memory such a machine may be started on its host. Its UUID is made of
// everything that the memory depends on: what the label says, the image, and how the host runs machines. So
// every process finds the same one, and a change of any of these leads to another one.
MachineId TemplateFor(const Creation& creation, const BootImage& image);

// Whether the volume belongs to a template.
bool IsOfTemplate(const MachineVolume& volume);

}  // namespace nodepool::drivers::libvirt
