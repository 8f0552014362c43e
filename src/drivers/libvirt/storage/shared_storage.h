#pragma once

#include <vector>

#include "drivers/libvirt/host/host.h"

namespace nodepool::drivers::libvirt {

// Whether what one host has in its storage pool is in the other one's, too.
bool ShareStorage(const Host& one, const Host& other);

// `hosts` without those that share the storage of an earlier one.
std::vector<Host*> OneOfEachStorage(const std::vector<Host*>& hosts);

}  // namespace nodepool::drivers::libvirt
