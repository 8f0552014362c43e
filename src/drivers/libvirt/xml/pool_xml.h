#pragma once

#include <string>

namespace nodepool::drivers::libvirt {

// A storage pool of type `dir` in a folder of the host.
std::string PoolXml(const std::string& name, const std::string& path);

}  // namespace nodepool::drivers::libvirt
