#pragma once

#include <cstddef>
#include <string>

namespace nodepool::zk::server {

// Of a session; clients expect this many bytes.
constexpr std::size_t kPasswordSize = 16;

// Random bytes that cannot be guessed. Error(kFail) when the system has none.
std::string NewPassword();

}  // namespace nodepool::zk::server
