#pragma once

#include <string>

namespace nodepool::daemon {

// Replaces "~" or "~user" at the beginning of a path by that user's home directory; for "~" that is HOME in
// the environment, else the system's entry. Other paths are returned unchanged.
std::string ExpandHome(const std::string& path);

}  // namespace nodepool::daemon
