#pragma once

#include <string_view>

namespace nodepool::store {

// All records stand below this path; for taking them elsewhere as a whole.
inline constexpr std::string_view kWholeTree = "/nodepool";

}  // namespace nodepool::store
