#pragma once

#include <string>
#include <string_view>

namespace nodepool::drivers::libvirt {

// A storage pool of type `dir` in a folder of the host.
std::string PoolXml(const std::string& name, const std::string& path);

// What a storage pool on a network is on, by the pool's description: the same for all hosts that have it.
// Empty: it is on a disk of its host. Error(kFail): the text is not XML.
std::string SharedStorageIn(std::string_view pool_xml);

}  // namespace nodepool::drivers::libvirt
