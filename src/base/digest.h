#pragma once

#include <string>
#include <string_view>

namespace nodepool {

// SHA-256 in lower-case hex, 64 digits.
std::string Sha256Hex(std::string_view bytes);

// HMAC-SHA-256, 32 bytes: identifies a secret in memory without keeping it.
std::string KeyedDigest(std::string_view key, std::string_view bytes);

}  // namespace nodepool
