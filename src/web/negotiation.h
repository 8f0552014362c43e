#pragma once

#include <optional>
#include <string_view>

namespace nodepool::web {

enum class Format { kText, kJson };

// How a list is to be shown, by the request's Accept header (operations.md 6.1): the best
// quality wins, text before JSON when they are equal. A header that is missing or cannot
// be read means text; nullopt: nothing that we have is acceptable (D-62).
std::optional<Format> ChooseFormat(std::optional<std::string_view> accept);

}  // namespace nodepool::web
