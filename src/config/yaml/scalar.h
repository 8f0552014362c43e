#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "config/yaml/value.h"

namespace nodepool::config {

// A plain (unquoted, untagged) scalar by the YAML 1.1 rules of configuration.md 2.2:
// `yes` is a boolean, `010` is 8, `12:30` is 750, `1e3` is a string. Errors are
// spellings that promise a number or date and are none (`0x_`, `2024-13-01`), and
// `=` and `<<` as values; their messages have no position.
Expected<Value> ResolvePlainScalar(const std::string& text, Position position);

// A scalar with an explicit standard tag, e.g. "tag:yaml.org,2002:int".
Expected<Value> ResolveTaggedScalar(std::string_view tag, const std::string& text, Position position);

// How the Python implementation writes the value as text (configuration.md 7.4):
// True, 8.1, 20.0, 1e+16. Requires a scalar; null gives "".
std::string PythonText(const Value& value);

}  // namespace nodepool::config
