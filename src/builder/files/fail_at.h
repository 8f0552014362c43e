#pragma once

#include <fmt/format.h>

#include <cstring>
#include <string>

#include "base/error.h"

namespace nodepool::builder {

// Throws Error(kFail) that names the path and says what the error number `code` means.
[[noreturn]] inline void FailAt(const std::string& path, int code) {
  throw Error(Verdict::kFail, fmt::format("{}: {}", path, std::strerror(code)));
}

}  // namespace nodepool::builder
