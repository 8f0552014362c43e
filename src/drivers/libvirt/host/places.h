#pragma once

#include <optional>
#include <string>

#include "drivers/libvirt/config/host_config.h"
#include "drivers/libvirt/host/connection.h"

namespace nodepool::drivers::libvirt {

// The storage pool, started; made first where the host has none of the name and `pool` has a path. Blocks.
// kInvalid: there is none and none can be made.
PoolHandle OpenPool(virConnectPtr connection, const StoragePool& pool);

// Makes and starts `made` where the host has no such network, and sees that the network runs. Blocks.
// kInvalid: it does not exist, or does not run, and is not to be made.
void OpenNetwork(virConnectPtr connection, const std::string& name, const std::optional<NewNetwork>& made);

}  // namespace nodepool::drivers::libvirt
