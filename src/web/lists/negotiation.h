#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "net/http/http.h"

namespace nodepool::web {

// The Accept header; nothing when it is missing.
std::optional<std::string_view> AcceptOf(const net::HttpRequest& request);

// Which of the media types that are offered an Accept header wants most: the best quality wins,
// the earlier one when they are equal. A header that is missing or cannot be read means the
// first; nothing: none is acceptable.
std::optional<std::string_view> ChooseType(std::optional<std::string_view> accept,
                                           std::span<const std::string_view> offers);

enum class Format { kText, kJson };

// How a list is to be shown (operations.md 6.1): text before JSON when they are wanted as much.
// nullopt: nothing that we have is acceptable (D-62).
std::optional<Format> ChooseFormat(std::optional<std::string_view> accept);

}  // namespace nodepool::web
