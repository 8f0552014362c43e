#pragma once

#include <string_view>

#include "base/error.h"
#include "config/yaml/value.h"

namespace nodepool::config {

// A literal as Python writes it: numbers, True, False, None, texts in quotes, tuples, lists
// and mappings of them, and the names of constants, such as sys.stdout, which become their
// text. Nothing is evaluated. Places are counted from `start`. Errors begin with the place.
Expected<Value> ParsePythonLiteral(std::string_view text, Position start);

}  // namespace nodepool::config
