#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema/section.h"

namespace nodepool::config {

// What a token's bearer may do over HTTP, besides reading (http-requests.md 2.1).
enum class Scope { kRead, kRequest, kOperate };
std::string_view ToString(Scope scope);

struct WebToken {
  std::string name;
  std::string hash;  // of its secret (base/password_hash.h)
  std::set<Scope> scopes;
  std::optional<std::int64_t> max_nodes;
  std::vector<std::string> labels;  // patterns; empty: all labels
  std::optional<std::int64_t> priority;
  std::optional<std::string> tenant;

  bool may(Scope scope) const { return scopes.contains(scope); }
};

// The setting `webapp-tokens` of the secure file.
Setting WebTokensSetting();
// Error(kInvalid), with the place, for a token that cannot be used; it never quotes a hash.
std::vector<WebToken> ReadWebTokens(const Section& root);

// Whether the text can be a token's name.
bool IsTokenName(std::string_view name);
// Whether the text matches the pattern, in which `*` is any text.
bool MatchesPattern(std::string_view text, std::string_view pattern);

}  // namespace nodepool::config
