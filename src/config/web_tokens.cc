#include "config/web_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/password_hash.h"
#include "base/text.h"

namespace nodepool::config {
namespace {

constexpr std::size_t kMaxName = 64;
constexpr std::int64_t kMaxPriority = 999;

constexpr std::array<std::pair<Scope, std::string_view>, 3> kScopes = {
    {{Scope::kRead, "read"}, {Scope::kRequest, "request"}, {Scope::kOperate, "operate"}}};

std::set<Scope> ReadScopes(const Section& section) {
  std::set<Scope> scopes = {Scope::kRead};
  for (const std::string& word : section.TextList("scopes")) {
    auto scope = std::ranges::find(kScopes, word, [](const auto& each) { return each.second; });
    if (scope == kScopes.end())
      throw section.Fail("scopes",
                         fmt::format("expected read, request and operate, found {}", Excerpt(word)));
    scopes.insert(scope->first);
  }
  return scopes;
}

std::optional<std::int64_t> ReadBounded(const Section& section, std::string_view key, std::int64_t limit) {
  std::optional<std::int64_t> number = section.OptionalInt(key);
  if (number && (*number < 0 || *number > limit))
    throw section.Fail(key, fmt::format("expected a number from 0 to {}", limit));
  return number;
}

WebToken ReadWebToken(const Section& section) {
  constexpr std::int64_t kMaxNodes = 1'000'000;
  WebToken token;
  token.name = section.Text("name");
  if (!IsTokenName(token.name))
    throw section.Fail("name", "expected 1 to 64 letters, digits, underscores and dashes");
  token.hash = section.Text("hash");
  if (!IsSecretHash(token.hash)) throw section.Fail("hash", "expected the hash that `nodepool token` prints");
  token.scopes = ReadScopes(section);
  token.max_nodes = ReadBounded(section, "max-nodes", kMaxNodes);
  token.labels = section.TextList("labels");
  token.priority = ReadBounded(section, "priority", kMaxPriority);
  token.tenant = section.OptionalText("tenant");
  return token;
}

}  // namespace

std::string_view ToString(Scope scope) {
  return std::ranges::find(kScopes, scope, [](const auto& each) { return each.first; })->second;
}

Setting WebTokensSetting() {
  Schema token = Schema::Map({
      Setting("name", Schema::String(), "Its name: letters, digits, underscores and dashes.").Required(),
      Setting("hash", Schema::String(), "Hash of its secret, as `nodepool token` prints it.")
          .Required()
          .Secret(),
      Setting("scopes", Schema::List(Schema::String()),
              "What it allows besides reading: `request`: leases of its own; `operate`: those of all, and to "
              "change "
              "nodes, images and providers."),
      Setting("max-nodes", Schema::Int(),
              "Nodes that its leases may have at a time, together with those that it holds.")
          .Unit("nodes"),
      Setting("labels", Schema::List(Schema::String()),
              "Labels that it may ask for, `*` for any text; without it all."),
      Setting("priority", Schema::Int(), "Least number that it may ask for as priority, and its default."),
      Setting("tenant", Schema::String(), "Tenant of all its requests."),
  });
  return Setting("webapp-tokens", Schema::List(std::move(token)),
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
