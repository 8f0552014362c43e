#pragma once

#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::libvirt {

// A provider's section of driver `libvirt` (driver-libvirt.md 2). Part of every program, unlike the driver.
// The lists of a provider and of a pool are read by LoadLibvirtConfig.
const Bindings<LibvirtConfig>& LibvirtSettings();
const Bindings<LibvirtCloudImage>& LibvirtCloudImageSettings();
const Bindings<LibvirtPool>& LibvirtPoolSettings();
const Bindings<LibvirtLabel>& LibvirtLabelSettings();

}  // namespace nodepool::drivers::libvirt
