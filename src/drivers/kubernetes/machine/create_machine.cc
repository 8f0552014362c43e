#include "drivers/kubernetes/machine/create_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/cleanup.h"
#include "base/encoding.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/own_types.h"
#include "drivers/kubernetes/bodies.h"
#include "drivers/kubernetes/machine/account.h"
#include "drivers/kubernetes/machine/namespace.h"
#include "drivers/kubernetes/machine/pod.h"
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

}  // namespace nodepool::drivers::kubernetes
