#pragma once

#include <string_view>

namespace nodepool::daemon {

// The release, as `--version` prints it.
std::string_view Version();

}  // namespace nodepool::daemon
