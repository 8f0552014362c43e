#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/yaml/value.h"

namespace nodepool::config {

// The value of an environment variable.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;

// The environment of the process.
Environment ProcessEnvironment();

// `text` with every %(NODEPOOL_X) replaced by the variable's value, in one pass from left to right
// (configuration.md 2.1). Placeholders of variables that are not set or have another prefix remain.
std::string SubstituteEnvironment(std::string_view text, const Environment& environment);

// A key that a mapping has more than once: the last one counts.
struct RepeatedKey {
  std::string key;
  Position before;
  Position again;
  bool is_content_lost = false;  // what the one before said was more than nothing

  // "line 9, column 1: providers is given again; what line 2 says has no effect".
  std::string ToString() const;
};

struct Document {
  Value root;
  std::vector<RepeatedKey> repeated;  // in order; the first hundred
};

// One YAML document in the dialect of configuration.md 2.2; an empty one is null. Errors begin with
// "line L, column C: ". Nesting is bounded, and so is the expansion of aliases: a document is
// refused when, written out without aliases, it would be far larger than its text.
Expected<Document> ParseDocument(const std::string& text);
// Its root alone.
Expected<Value> ParseYaml(const std::string& text);

// `text` with only its top-level keys that begin with one of the prefixes; all other lines are empty, so that
// places remain. For a file that cannot be parsed as a whole.
std::string OnlySections(std::string_view text, const std::vector<std::string_view>& prefixes);

// Reads and substitutes a file; errors begin with the path.
Expected<std::string> ReadText(const std::string& path, const Environment& environment);
// Reads, substitutes and parses a file; errors begin with the path.
Expected<Document> ReadDocument(const std::string& path, const Environment& environment);
Expected<Value> ReadYamlFile(const std::string& path, const Environment& environment);

}  // namespace nodepool::config
