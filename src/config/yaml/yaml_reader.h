#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/yaml/value.h"

namespace nodepool::config {

// The value of an environment variable.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;

// That of the process.
Environment ProcessEnvironment();

// `text` with every %(NODEPOOL_X) replaced by the variable's value, in one pass from
// left to right (configuration.md 2.1). Placeholders of variables that are not set
// or have another prefix stay.
std::string SubstituteEnvironment(std::string_view text, const Environment& environment);

// One YAML document in the dialect of configuration.md 2.2; an empty one is null.
// Errors begin with "line L, column C: ". Nesting is bounded, and so is what
// aliases make of a small text: a document is refused when, written out without
// aliases, it would be far larger than what stands there.
Expected<Value> ParseYaml(const std::string& text);

// Reads, substitutes and parses a file; errors begin with the path.
Expected<Value> ReadYamlFile(const std::string& path, const Environment& environment);

}  // namespace nodepool::config
