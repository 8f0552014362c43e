#pragma once

#include "drivers/libvirt/config/host_place.h"
#include "drivers/libvirt/host/handles.h"

namespace nodepool::drivers::libvirt {

// The storage pool, started; made first where the host has none of the name and `pool` has a path. Blocks.
// kInvalid: there is none and none can be made.
PoolHandle OpenPool(virConnectPtr connection, const StoragePool& pool);

}  // namespace nodepool::drivers::libvirt
