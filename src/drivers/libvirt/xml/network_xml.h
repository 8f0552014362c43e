#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "drivers/libvirt/config/host_place.h"

namespace nodepool::drivers::libvirt {

// A network behind NAT on a bridge that libvirt names. The host has the subnet's first address; its DHCP
// server hands out the others for ten minutes.
std::string NetworkXml(const NewNetwork& network);

// How many IPv4 addresses the DHCP server of a network may hand out, by the network's description; 0: it has
// no such server. Error(kFail): the text is not XML.
std::uint64_t LeaseRangeIn(std::string_view network_xml);

}  // namespace nodepool::drivers::libvirt
