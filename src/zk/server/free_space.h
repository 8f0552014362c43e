#pragma once

#include <cstdint>
#include <string>

namespace nodepool::zk::server {

// "; 0.1 MB are free in /var/lib/nodepool" where `available` bytes may be too few to work with; else
// empty.
std::string ShortageText(const std::string& folder, std::uintmax_t available);

// The same of the file system on which a file is, or is to be.
std::string ShortageNear(const std::string& path);

}  // namespace nodepool::zk::server
