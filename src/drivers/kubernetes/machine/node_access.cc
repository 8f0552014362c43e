#include "drivers/kubernetes/machine/node_access.h"

#include "base/json_fields.h"
#include "base/time_text.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;
using driver::cloud::AccessState;
using driver::cloud::NodeAccess;

namespace {

constexpr const char* kBegin = "token_begins";
constexpr const char* kEnd = "token_ends";

std::optional<TokenLife> LifeIn(const json::value& driver_data) {
  if (!driver_data.is_object()) return std::nullopt;
  std::optional<WallTime> begin = ParseIso8601(TextIn(driver_data.as_object(), kBegin));
  std::optional<WallTime> end = ParseIso8601(TextIn(driver_data.as_object(), kEnd));
  if (!begin || !end) return std::nullopt;
  return TokenLife{*begin, *end};
}

std::string TextOf(const json::value& port, std::string_view key) {
  return port.is_object() ? TextIn(port.as_object(), key) : "";
}

}  // namespace

json::value ToDriverData(const TokenLife& life) {
  return json::object{{kBegin, Iso8601(life.begin)}, {kEnd, Iso8601(life.end)}};
}

Task<AccessState> StateOfAccess(Cloud& cloud, NodeAccess access) {
  if (cloud.config->kind == Kind::kOpenshiftPods) {
    std::shared_ptr<const Access> own = co_await cloud.access.Get();
    bool is_current = own->token.empty() || TextOf(access.connection_port, "token") == own->token;
    co_return is_current ? AccessState::kLasts : AccessState::kRenewalDue;
  }
  std::optional<TokenLife> life = LifeIn(access.driver_data);
  if (!life) co_return AccessState::kLasts;
  auto left = life->end - cloud.loop().Now();
  auto whole = life->end - life->begin;
  if (left > whole / 2) co_return AccessState::kLasts;
  co_return left > whole / 4 ? AccessState::kRenewalDue : AccessState::kEnds;
}

Task<NodeAccess> RenewAccess(Cloud& cloud, NodeAccess access) {
  std::string name_space = TextOf(access.connection_port, "namespace");
  if (name_space.empty()) throw Error(Verdict::kFail, "the node's record names no namespace");
  json::object& port = access.connection_port.as_object();
  if (cloud.config->kind == Kind::kOpenshiftPods) {
    std::shared_ptr<const Access> own = co_await cloud.access.Get();
    port["token"] = own->token;
    co_return access;
  }
  NodeToken token = co_await RequestToken(cloud, std::move(name_space));
  port["token"] = token.token;
  access.driver_data = token.life ? ToDriverData(*token.life) : json::value();
  co_return access;
}

}  // namespace nodepool::drivers::kubernetes
