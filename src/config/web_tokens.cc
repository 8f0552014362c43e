#include "config/web_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/password_hash.h"
#include "base/text.h"
#include "config/schema/bindings.h"

namespace nodepool::config {
namespace {

constexpr std::size_t kMaxName = 64;
constexpr double kMaxPriority = 999;

constexpr std::array<std::pair<Scope, std::string_view>, 3> kScopes = {
    {{Scope::kRead, "read"}, {Scope::kRequest, "request"}, {Scope::kOperate, "operate"}}};

void ReadScopes(const Section& section, const std::string& key, WebToken& token) {
  token.scopes = {Scope::kRead};
  for (const std::string& word : section.TextList(key)) {
    auto scope = std::ranges::find(kScopes, word, [](const auto& each) { return each.second; });
    if (scope == kScopes.end())
      throw section.Fail(key, fmt::format("expected read, request and operate, found {}", Excerpt(word)));
    token.scopes.insert(scope->first);
  }
}

const Bindings<WebToken>& WebTokenSettings() {
  static const Bindings<WebToken> settings = {
      {Setting("name", "Its name: letters, digits, underscores and dashes.").Required(), &WebToken::name},
      {Setting("hash", "Hash of its secret, as `nodepool token` prints it.").Required().Secret(),
       &WebToken::hash},
      {Setting(
           "scopes", Schema::List(Schema::String()),
           "What it allows besides reading: `request`: leases of its own; `operate`: those of all, and to "
           "change nodes, images and providers."),
       ReadScopes},
      {Setting("max-nodes", Schema::Int().Between(0, 1'000'000),
               "Nodes that its leases may have at a time, together with those that it holds.")
           .Unit("nodes"),
       &WebToken::max_nodes},
      {Setting("labels", "Labels that it may ask for, `*` for any text; without it all."), &WebToken::labels},
      {Setting("priority", Schema::Int().Between(0, kMaxPriority),
               "Least number that it may ask for as priority, and its default."),
       &WebToken::priority},
      {Setting("tenant", "Tenant of all its requests."), &WebToken::tenant},
  };
  return settings;
}

WebToken ReadWebToken(const Section& section) {
  WebToken token;
  WebTokenSettings().Read(section, token);
  if (!IsTokenName(token.name))
    throw section.Fail("name", "expected 1 to 64 letters, digits, underscores and dashes");
  if (!IsSecretHash(token.hash)) throw section.Fail("hash", "expected the hash that `nodepool token` prints");
  return token;
}

}  // namespace

std::string_view ToString(Scope scope) {
  return std::ranges::find(kScopes, scope, [](const auto& each) { return each.first; })->second;
}

Setting WebTokensSetting() {
  return Setting("webapp-tokens", Schema::List(WebTokenSettings().ToSchema()),
                 "Who may change something through the web server.");
}

std::vector<WebToken> ReadWebTokens(const Section& root) {
  std::vector<WebToken> tokens;
  for (const Section& section : root.Sections("webapp-tokens")) {
    WebToken token = ReadWebToken(section);
    if (std::ranges::find(tokens, token.name, &WebToken::name) != tokens.end())
      throw section.Fail("name", fmt::format("the token {} is defined twice", token.name));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

bool IsTokenName(std::string_view name) {
  auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kMaxName && std::ranges::all_of(name, is_good);
}

// The parts between the stars, each found as early as possible.
bool MatchesPattern(std::string_view text, std::string_view pattern) {
  std::size_t star = pattern.find('*');
  if (star == pattern.npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (star = pattern.find('*'); star != pattern.npos; star = pattern.find('*')) {
    std::size_t found = text.find(pattern.substr(0, star));
    if (found == text.npos) return false;
    text.remove_prefix(found + star);
    pattern.remove_prefix(star + 1);
  }
  return text.ends_with(pattern);
}

}  // namespace nodepool::config
