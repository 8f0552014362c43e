#pragma once

#include <optional>
#include <string>

#include "drivers/libvirt/config/host_place.h"
#include "drivers/libvirt/host/handles.h"

namespace nodepool::drivers::libvirt {

// Makes and starts `made` where the host has no such network, and sees that the network runs. Blocks.
// kInvalid: it does not exist, or does not run, and is not to be made.
void OpenNetwork(virConnectPtr connection, const std::string& name, const std::optional<NewNetwork>& made);

}  // namespace nodepool::drivers::libvirt
