#pragma once

#include <string_view>

namespace nodepool {

// The release, e.g. "1.0.0".
std::string_view Version();

}  // namespace nodepool
