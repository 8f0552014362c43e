#pragma once

#include <string>

namespace nodepool::daemon {

// A path whose beginning "~" or "~user" is replaced by that user's home directory: of "~" what
// the environment's HOME says, else the system. Any other path as it is.
std::string ExpandHome(const std::string& path);

}  // namespace nodepool::daemon
