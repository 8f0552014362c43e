#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nodepool {

std::string Base64(std::string_view bytes);

// The bytes; nullopt when `text` is not base64, padded and without blanks.
std::optional<std::string> FromBase64(std::string_view text);

// Two lower-case digits for each byte.
std::string Hex(std::string_view bytes);

}  // namespace nodepool
