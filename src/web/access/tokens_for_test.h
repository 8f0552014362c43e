#pragma once

#include <string>
#include <vector>

#include "web/access/access.h"

namespace nodepool::web {

// The secret of each token is its hash.
inline Task<bool> MatchPlainly(std::string secret, std::string hash) { co_return secret == hash; }

inline config::WebToken Token(std::string name, std::set<config::Scope> scopes = {config::Scope::kRead,
                                                                                  config::Scope::kRequest}) {
  config::WebToken token;
  token.name = name;
  token.hash = "secret-of-" + name;
  token.scopes = std::move(scopes);
  return token;
}

inline config::Config WithTokens(std::vector<config::WebToken> tokens) {
  config::Config config;
  config.web_tokens = std::move(tokens);
  return config;
}

inline std::string TokenText(const std::string& token) { return token + ".secret-of-" + token; }

}  // namespace nodepool::web
