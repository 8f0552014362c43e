#pragma once

#include <optional>
#include <string>

#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::libvirt {

// An entry of a provider's `hosts`.
const Bindings<HostConfig>& HostSettings();
// What a host may have of its own and otherwise takes from the provider.
const Bindings<HostConfig>& HostDefaults();

// The schema of `network` in a pool or a label, where none can be made: a name, a bridge, QEMU's own network,
// or several names.
Schema LabelNetworkSchema();

// `network`: the name of one, the first of several, or a mapping; none where it is not set. Error(kInvalid)
// names line and column.
std::optional<MachineNetwork> ReadNetwork(const Section& section, std::string_view key);

// A provider's section of driver `libvirt` (driver-libvirt.md 2). Part of every program, unlike the driver.
// The lists of a provider and of a pool are read by LoadLibvirtConfig.
const Bindings<LibvirtConfig>& LibvirtSettings();
const Bindings<LibvirtCloudImage>& LibvirtCloudImageSettings();
const Bindings<LibvirtPool>& LibvirtPoolSettings();
const Bindings<LibvirtLabel>& LibvirtLabelSettings();

}  // namespace nodepool::drivers::libvirt
