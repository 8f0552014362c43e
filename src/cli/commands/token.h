#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/web_tokens.h"

namespace nodepool::cli {

// What a new token allows (http-requests.md 2.1).
struct TokenOptions {
  std::string name;
  std::vector<std::string> scopes;
  std::optional<std::int64_t> max_nodes;
  std::vector<std::string> labels;
  std::optional<std::int64_t> priority;
  std::optional<std::string> tenant;
};

// Prints a new token, whose secret is nowhere else, and its entry for the secure file. Returns the exit
// status.
int MakeToken(const TokenOptions& options, std::ostream& out);

// The entry as YAML.
std::string TokenEntry(const TokenOptions& options, const std::string& hash);
// As a YAML scalar in single quotes.
std::string YamlText(std::string_view text);

}  // namespace nodepool::cli
