#pragma once

#include <string>

#include "drivers/libvirt/config/host_place.h"

namespace nodepool::drivers::libvirt {

// A network behind NAT on a bridge that libvirt names. The host has the subnet's first address; its DHCP
// server hands out the others for ten minutes.
std::string NetworkXml(const NewNetwork& network);

}  // namespace nodepool::drivers::libvirt
