#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "net/http/http.h"

namespace nodepool::web {

// The Accept header; nullopt: it is missing.
std::optional<std::string_view> AcceptOf(const net::HttpRequest& request);

// The offered media type that an Accept header prefers: the one with the best quality, the earlier one of
// equals; the first if the header is missing or malformed. nullopt: none is acceptable.
std::optional<std::string_view> ChooseType(std::optional<std::string_view> accept,
                                           std::span<const std::string_view> offers);

// Whether an Accept-Encoding header prefers gzip to a text as it is. False where it cannot be parsed; what
// the header does not name at all is preferred the least.
bool PrefersGzip(std::string_view accept_encoding);

enum class Format { kText, kJson };

// The format of a list (operations.md 6.1): text rather than JSON if both are accepted equally. nullopt: no
// format of ours is acceptable (D-62).
std::optional<Format> ChooseFormat(std::optional<std::string_view> accept);

}  // namespace nodepool::web
