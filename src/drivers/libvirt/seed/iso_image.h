#pragma once

#include <map>
#include <string>

namespace nodepool::drivers::libvirt {

// The bytes of an ISO 9660 image (with Rock Ridge and Joliet names) that contains `files`, by path, readable
// by everybody. The label is kept as it is, also in lower case.
std::string IsoImage(const std::string& label, const std::map<std::string, std::string>& files);

}  // namespace nodepool::drivers::libvirt
