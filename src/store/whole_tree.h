#pragma once

#include <string_view>

namespace nodepool::store {

// All records are below this path; for copying them to another server as a whole.
inline constexpr std::string_view kWholeTree = "/nodepool";

}  // namespace nodepool::store
