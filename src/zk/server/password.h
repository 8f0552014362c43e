#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nodepool::zk::server {

// Of a session; clients expect this many bytes.
constexpr std::size_t kPasswordSize = 16;

// Random bytes that cannot be guessed. Error(kFail) when the system has none.
std::string NewPassword();

// The user of the digest identity by which clients over plain TCP show ServerOptions::client_secret.
constexpr std::string_view kClientUser = "nodepool";

// Whether both are equal; takes equally long wherever they differ.
bool IsSameSecret(std::string_view a, std::string_view b);

}  // namespace nodepool::zk::server
