#include "drivers/kubernetes/machine/create_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/backoff.h"
#include "async/task.h"
#include "base/clock.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/machine/machines.h"
#include "drivers/kubernetes/names.h"

namespace nodepool::drivers::kubernetes {

namespace api = driver::cloud::api;
namespace json = boost::json;
using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::MachineReport;

namespace {

// The driver's own words come before the framework's time-out, which counts the deletion of an earlier
// attempt's namespace, too.
Duration TimeToLaunch(const KubernetesConfig& config) {
  Duration limit = config.launch_timeout;
  return limit - std::min<Duration>(limit / 10, std::chrono::seconds(10));
}

// What jobs need to use the node: the record's connection_port (driver-kubernetes.md 11).
json::object ConnectionPort(Kind kind, const NodePlan& plan, const Access& access, const NodeToken& token) {
  bool skips_tls = !access.tls->verifies_peer;
  json::object port = {{"namespace", plan.name_space},
                       {"host", access.server},
                       {"skiptls", skips_tls},
                       {"token", token.token},
                       {"user", kAccount}};
  if (kind == Kind::kKubernetes) port["name"] = plan.name_space;
  if (!plan.pod.empty()) port["pod"] = plan.pod;
  bool has_authority = !skips_tls && !token.ca_base64.empty();
  if (has_authority) {
    port["ca_crt"] = token.ca_base64;
  } else if (kind == Kind::kOpenshiftPods) {
    port["ca_crt"] = nullptr;
  }
  return port;
}

Task<Instance> Describe(Cloud& cloud, const NodePlan& plan, NodeToken token, std::string host) {
  std::shared_ptr<const Access> access = co_await cloud.access.Get();
  Instance instance;
  instance.external_id = plan.external_id;
  instance.name = plan.external_id;
  if (!plan.pod.empty()) instance.interface_ip = plan.pod;
  bool has_host = !plan.pod.empty() && cloud.config->kind != Kind::kOpenshift;
  if (has_host) instance.host_id = std::move(host);
  instance.cloud = cloud.config->context;
  instance.metadata = plan.labels;
  instance.quota = driver::QuotaInformation::Amount(plan.label->need);
  instance.connection.connection_port = ConnectionPort(cloud.config->kind, plan, *access, token);
  if (token.life) instance.driver_data = ToDriverData(*token.life);
  co_return instance;
}

// Jobs get our own token: there is no account for the node.
Task<NodeToken> OwnToken(AccessSource& source, const std::string& cluster) {
  std::shared_ptr<const Access> access = co_await source.Get();
  if (access->token.empty()) {
    throw Error(Verdict::kInvalid, cluster +
                                       " has no token that jobs could get; the driver openshiftpods needs a "
                                       "user with a token");
  }
  NodeToken token{access->token, access->ca_pem.empty() ? "" : Base64(access->ca_pem)};
  co_return token;
}

// Whether a creation that failed may have made something nevertheless.
bool MayHaveMade(const Failure& failure) {
  int status = api::StatusOf(failure);
  if (status != 0) return status >= 500;
  try {
    failure.Rethrow();
  } catch (const net::HttpError& error) {
    return error.may_have_been_seen();
  } catch (...) {
    return failure.verdict() == Verdict::kCancelled;
  }
}

Task<> StoreId(MachineReport& machine, std::string id) {
  json::value external_id(std::move(id));
  co_await machine.SetExternalId(std::move(external_id));
}

// The name is this attempt's alone, so what may have been made is deleted by it like what was made.
Task<> StoreIdUnlessRefused(MachineReport& machine, std::string id, const Failure& failure) {
  if (MayHaveMade(failure)) co_await StoreId(machine, std::move(id));
}

Task<Instance> CreateInPool(Cloud& cloud, MachineReport& machine, const NodePlan& plan) {
  NodeToken token = co_await OwnToken(cloud.access, cloud.cluster.name());
  machine.SetState("creating the pod");
  cloud.watches.PodsOfPool(plan.name_space);
  Task<std::string> making = MakePod(cloud, plan);
  auto store = [&](const Failure& failure) {
    return StoreIdUnlessRefused(machine, plan.external_id, failure);
  };
  std::string uid = co_await OnFailure(std::move(making), store);
  co_await StoreId(machine, plan.external_id);
  std::string host = co_await WaitForPod(cloud, machine, plan, std::move(uid));
  Instance instance = co_await Describe(cloud, plan, std::move(token), std::move(host));
  co_return instance;
}

Task<Instance> CreateInNamespace(Cloud& cloud, MachineReport& machine, const NodePlan& plan) {
  machine.SetState("creating the namespace");
  cloud.watches.Namespaces();  // the deletion waits for its end
  Task<> making = MakeNamespace(cloud, plan);
  auto store = [&](const Failure& failure) {
    return StoreIdUnlessRefused(machine, plan.external_id, failure);
  };
  co_await OnFailure(std::move(making), store);
  co_await StoreId(machine, plan.external_id);
  machine.SetState("creating the account");
  bool has_secret = co_await MakeAccount(cloud, plan);
  std::string uid;
  if (!plan.pod.empty()) {
    machine.SetState("creating the pod");
    uid = co_await MakePod(cloud, plan);
  }
  machine.SetState("waiting for the token");
  NodeToken token = co_await TokenOfAccount(cloud, plan, has_secret);
  std::string host;
  if (!plan.pod.empty()) host = co_await WaitForPod(cloud, machine, plan, std::move(uid));
  Instance instance = co_await Describe(cloud, plan, std::move(token), std::move(host));
  co_return instance;
}

}  // namespace

Task<Instance> CreateMachine(Cloud& cloud, MachineReport& machine, CreateParameters parameters) {
  SteadyTime deadline = cloud.loop().SteadyNow() + TimeToLaunch(*cloud.config);
  const NodePlan plan = PlanNode(*cloud.config, parameters, deadline, machine.logger());
  if (cloud.config->kind == Kind::kOpenshiftPods) co_return co_await CreateInPool(cloud, machine, plan);
  co_return co_await CreateInNamespace(cloud, machine, plan);
}

NodePlan PlanNode(const KubernetesConfig& config, const driver::cloud::CreateParameters& parameters,
                  SteadyTime deadline, const log::Logger& logger) {
  NodePlan plan;
  plan.label = driver::cloud::As<KubernetesLabel>(parameters.label);
  plan.deadline = deadline;
  const std::string& node_id = parameters.metadata.at(driver::cloud::kNodeKey);
  const std::string& pool = parameters.pool->name.str();
  const std::string& label = plan.label->name.str();
  if (config.kind == Kind::kOpenshiftPods) {
    plan.name_space = pool;
    plan.pod = NameForNode(label, node_id, parameters.attempt_mark);
    plan.external_id = fmt::format("{}-{}", pool, plan.pod);
  } else {
    plan.name_space = NameForNode(pool, node_id, parameters.attempt_mark);
    if (plan.label->has_pod) plan.pod = label;
    plan.external_id = plan.name_space;
  }
  plan.labels = LabelsOf(*plan.label, parameters, logger);
  if (!plan.pod.empty()) plan.pod_body = PodBody(config.kind, *plan.label, plan.pod, plan.labels);
  return plan;
}

std::string PodOfExternalId(const std::string& external_id, const std::string& pool) {
  std::string beginning = pool + "-";
  if (!external_id.starts_with(beginning)) {
    throw Error(Verdict::kFail,
                fmt::format("{} is not the external id of a pod of pool {}", external_id, pool));
  }
  return external_id.substr(beginning.size());
}

namespace {

// A project's labels are lost when it is requested; not everyone may set them later.
Task<> LabelProject(Cluster& cluster, log::Logger logger, const NodePlan& plan) {
  json::object body = {{"metadata", json::object{{"labels", ToJson(plan.labels)}}}};
  Task<json::object> call =
      cluster.MergePatch(std::string(kNamespaces) + "/" + plan.name_space, std::move(body));
  Outcome<json::object> labelled = co_await Attempt(std::move(call));
  if (!labelled) logger.Debug("Project {} has no labels: {}", plan.name_space, labelled.error().message());
}

}  // namespace

Task<> MakeNamespace(Cloud& cloud, const NodePlan& plan) {
  bool is_project = cloud.config->kind == Kind::kOpenshift;
  json::object body = is_project ? ProjectRequestBody(plan.name_space, plan.labels)
                                 : NamespaceBody(plan.name_space, plan.labels);
  Task<json::object> call =
      cloud.cluster.Create(is_project ? kProjectRequests : kNamespaces, std::move(body));
  Outcome<json::object> made = co_await Attempt(std::move(call));
  // What exists has this attempt's name: the answer to an earlier call was lost.
  if (!made && ReasonOf(made.error()) != "AlreadyExists") made.error().Rethrow();
  if (is_project) co_await LabelProject(cloud.cluster, cloud.logger, plan);
}

Task<std::string> OwnName(Cluster& cluster) {
  Outcome<json::object> user = co_await Attempt(cluster.Get(kOwnUser));
  const json::object* metadata = user ? ObjectIn(*user, "metadata") : nullptr;
  co_return metadata == nullptr ? std::string() : TextIn(*metadata, "name");
}

namespace api = driver::cloud::api;

namespace {

constexpr Duration kNewFor = std::chrono::seconds(10);
constexpr Backoff::Settings kNewPauses{std::chrono::milliseconds(100), std::chrono::seconds(1)};

bool IsTooNew(Kind kind, const Failure& failure) {
  int status = api::StatusOf(failure);
  std::string reason = ReasonOf(failure);
  // "No API token found for service account", before 1.24.
  if (status == 500) return reason == "ServerTimeout";
  if (status != 403 || failure.verdict() == Verdict::kQuota || reason == "NamespaceTerminating") return false;
  auto says = [&failure](const char* words) { return failure.message().find(words) != std::string::npos; };
  if (kind == Kind::kOpenshift) return !says("denied the request");  // of an admission web hook, which lasts
  return says("error looking up service account");
}

}  // namespace

Task<boost::json::object> CreateInNew(Cloud& cloud, std::string collection, boost::json::object body) {
  SteadyTime until = cloud.loop().SteadyNow() + kNewFor;
  Backoff pauses(kNewPauses, cloud.environment.random);
  while (true) {
    Task<boost::json::object> call = cloud.cluster.Create(collection, body);
    Outcome<boost::json::object> created = co_await Attempt(std::move(call));
    if (created) co_return std::move(*created);
    if (ReasonOf(created.error()) == "AlreadyExists") co_return boost::json::object();
    bool is_too_new = IsTooNew(cloud.config->kind, created.error());
    if (!is_too_new || cloud.loop().SteadyNow() >= until) created.error().Rethrow();
    Duration pause = pauses.Next();
    co_await cloud.loop().SleepFor(pause);
  }
}

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
