#include "drivers/kubernetes/machine/account.h"

#include <fmt/format.h>

#include "async/attempt.h"
#include "async/backoff.h"
#include "base/encoding.h"
#include "base/json_fields.h"
#include "base/time_text.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/machine/namespace.h"

namespace nodepool::drivers::kubernetes {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr Duration kSecretLimit = std::chrono::seconds(10);
constexpr Backoff::Settings kSecretPauses{std::chrono::milliseconds(20), std::chrono::seconds(1)};

// Only rights that we have ourselves can be given.
Task<> MakeRole(Cloud& cloud, const NodePlan& plan) {
  bool has_pod = !plan.pod.empty();
  std::string roles = RbacInNamespace(plan.name_space, "roles");
  Task<json::object> call = CreateInNew(cloud, roles, RoleBody(has_pod, cloud.grants_full_roles));
  Outcome<json::object> made = co_await Attempt(std::move(call));
  if (made) co_return;
  if (api::StatusOf(made) != 403 || !cloud.grants_full_roles) made.error().Rethrow();
  cloud.grants_full_roles = false;
  cloud.logger.Info("Nodes of provider {} get the rights of older releases: {}", cloud.config->name,
                    made.error().message());
  Task<json::object> second = CreateInNew(cloud, roles, RoleBody(has_pod, false));
  co_await std::move(second);
}

// False: an admission, or a lack of rights, forbids it.
Task<bool> MakeTokenSecret(Cloud& cloud, const NodePlan& plan) {
  Task<json::object> call = CreateInNew(cloud, InNamespace(plan.name_space, "secrets"), TokenSecretBody());
  Outcome<json::object> made = co_await Attempt(std::move(call));
  if (made) co_return true;
  if (!FailedWith(made, Verdict::kInvalid)) made.error().Rethrow();
  cloud.logger.Info(
      "The secret for the token of namespace {} may not be made; the cluster is asked for a token, which "
      "ends "
      "after 30 days or earlier: {}",
      plan.name_space, made.error().message());
  co_return false;
}

Task<> GiveRights(Cloud& cloud, const NodePlan& plan) {
  bool is_admin = cloud.config->kind == Kind::kOpenshift;
  if (!is_admin) co_await MakeRole(cloud, plan);
  json::object binding = RoleBindingBody(plan.name_space, !plan.pod.empty());
  if (is_admin) binding = AdminBindingBody(plan.name_space);
  Task<json::object> call =
      CreateInNew(cloud, RbacInNamespace(plan.name_space, "rolebindings"), std::move(binding));
  co_await std::move(call);
}

// None: the secret is not filled yet.
std::optional<NodeToken> TokenIn(const json::object& secret) {
  const json::object* data = ObjectIn(secret, "data");
  if (data == nullptr) return std::nullopt;
  std::optional<std::string> token = FromBase64(TextIn(*data, "token"));
  std::string authority = TextIn(*data, "ca.crt");
  if (!token || token->empty() || authority.empty()) return std::nullopt;
  return NodeToken{std::move(*token), std::move(authority)};
}

Task<std::optional<NodeToken>> TokenOfSecret(Cloud& cloud, const NodePlan& plan) {
  std::string path = InNamespace(plan.name_space, "secrets/") + kAccount;
  SteadyTime until = cloud.loop().SteadyNow() + kSecretLimit;
  Backoff pauses(kSecretPauses, cloud.environment.random);
  while (true) {
    Outcome<json::object> secret = co_await Attempt(cloud.cluster.Get(path));
    if (!secret && !FailedWith(secret, Verdict::kNotFound)) secret.error().Rethrow();
    std::optional<NodeToken> token = secret ? TokenIn(*secret) : std::nullopt;
    if (token || cloud.loop().SteadyNow() >= until) co_return token;
    Duration pause = pauses.Next();
    co_await cloud.loop().SleepFor(pause);
  }
}

// The authorities that clusters publish in each namespace since 1.20, else those that we trust.
Task<std::string> Authorities(Cluster& cluster, AccessSource& source, std::string name_space) {
  std::string path = InNamespace(name_space, "configmaps/kube-root-ca.crt");
  Outcome<json::object> map = co_await Attempt(cluster.Get(std::move(path)));
  const json::object* data = map ? ObjectIn(*map, "data") : nullptr;
  std::string pem = data == nullptr ? "" : TextIn(*data, "ca.crt");
  if (pem.empty()) {
    std::shared_ptr<const Access> access = co_await source.Get();
    pem = access->ca_pem;
  }
  co_return Base64(pem);
}

}  // namespace

Task<bool> MakeAccount(Cloud& cloud, const NodePlan& plan) {
  Task<json::object> account =
      CreateInNew(cloud, InNamespace(plan.name_space, "serviceaccounts"), AccountBody());
  co_await std::move(account);
  bool has_secret = co_await MakeTokenSecret(cloud, plan);
  co_await GiveRights(cloud, plan);
  co_return has_secret;
}

Task<NodeToken> TokenOfAccount(Cloud& cloud, const NodePlan& plan, bool has_secret) {
  if (has_secret) {
    std::optional<NodeToken> token = co_await TokenOfSecret(cloud, plan);
    if (token) co_return std::move(*token);
    cloud.logger.Info(
        "The cluster has not filled the secret with the token of namespace {} within {} s: it is asked for a "
        "token, which ends after 30 days or earlier",
        plan.name_space, std::chrono::duration_cast<std::chrono::seconds>(kSecretLimit).count());
  }
  NodeToken requested = co_await RequestToken(cloud, plan.name_space);
  co_return requested;
}

Task<NodeToken> RequestToken(Cloud& cloud, std::string name_space) {
  std::string path = InNamespace(name_space, "serviceaccounts/") + kAccount + "/token";
  WallTime begin = cloud.loop().Now();
  Task<json::object> call = cloud.cluster.Create(path, TokenRequestBody());
  json::object answer = co_await std::move(call);
  const json::object* status = ObjectIn(answer, "status");
  NodeToken token;
  if (status != nullptr) token.token = TextIn(*status, "token");
  if (token.token.empty()) throw Error(Verdict::kFail, fmt::format("{} was answered without a token", path));
  if (std::optional<WallTime> end = ParseIso8601(TextIn(*status, "expirationTimestamp")))
    token.life = TokenLife{begin, *end};
  token.ca_base64 = co_await Authorities(cloud.cluster, cloud.access, std::move(name_space));
  co_return token;
}

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
