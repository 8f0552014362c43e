#include "drivers/kubernetes/machine/machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/own_types.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/machine/create_machine.h"
#include "drivers/kubernetes/machine/namespace.h"
#include "drivers/kubernetes/names.h"

namespace nodepool::drivers::kubernetes {

namespace {

bool HasNodeAndProvider(const Object& object, const KubernetesConfig& config) {
  auto provider = object.labels.find(driver::cloud::kProviderKey);
  return provider != object.labels.end() && provider->second == config.name.str() &&
         object.labels.contains(driver::cloud::kNodeKey);
}

// Whether the label of a node's namespace, as configured now, has a pod.
bool HasPod(const KubernetesConfig& config, const Object& name_space) {
  auto of = [&name_space](const char* key) {
    auto label = name_space.labels.find(key);
    return label == name_space.labels.end() ? std::string() : label->second;
  };
  auto pool = config.pools.find(PoolName(of(driver::cloud::kPoolKey)));
  if (pool == config.pools.end()) return false;
  auto label = pool->second->labels.find(LabelName(of(kLabelKey)));
  return label != pool->second->labels.end() && driver::cloud::As<KubernetesLabel>(*label->second).has_pod;
}

// A project whose labels were lost: gives it those that its name implies, where that is one that this
// provider gives.
bool LabelByName(Object& project, const KubernetesConfig& config) {
  for (const auto& [pool, settings] : config.pools) {
    std::string id = NodeIdIn(project.name, pool.str());
    if (id.empty()) continue;
    project.labels[driver::cloud::kProviderKey] = config.name.str();
    project.labels[driver::cloud::kPoolKey] = pool.str();
    project.labels[driver::cloud::kNodeKey] = id;
    return true;
  }
  return false;
}

Task<std::vector<Object>> OwnProjects(Cluster& cluster, const KubernetesConfig& config) {
  Task<ObjectList> reading = cluster.List(kProjects, "");
  ObjectList list = co_await std::move(reading);
  std::string own_name;
  bool is_name_known = false;
  std::vector<Object> own;
  for (Object& project : list.objects) {
    bool is_own = HasNodeAndProvider(project, config);
    bool may_be_own = !is_own && !project.labels.contains(driver::cloud::kProviderKey) &&
                      !project.requester.empty() && LabelByName(project, config);
    if (may_be_own) {
      if (!std::exchange(is_name_known, true)) own_name = co_await OwnName(cluster);
      is_own = project.requester == own_name;
    }
    if (is_own) own.push_back(std::move(project));
  }
  co_return own;
}

Task<std::vector<Object>> OwnPods(Cluster& cluster, const KubernetesConfig& config) {
  std::vector<Object> own;
  for (const auto& [name, pool] : config.pools) {
    Task<ObjectList> reading = cluster.List(InNamespace(name.str(), "pods"), OwnSelector(config));
    ObjectList list = co_await std::move(reading);
    std::ranges::move(list.objects, std::back_inserter(own));
  }
  co_return own;
}

Task<std::vector<Object>> OwnNamespaces(Cluster& cluster, const KubernetesConfig& config) {
  // Both labels: the provider's and a node's.
  std::string selector = OwnSelector(config) + "," + driver::cloud::kNodeKey;
  Task<ObjectList> reading = cluster.List(kNamespaces, std::move(selector));
  ObjectList list = co_await std::move(reading);
  co_return std::move(list.objects);
}

}  // namespace

Task<std::vector<Object>> ListOwn(Cluster& cluster, const KubernetesConfig& config) {
  switch (config.kind) {
    case Kind::kOpenshift:
      return OwnProjects(cluster, config);
    case Kind::kOpenshiftPods:
      return OwnPods(cluster, config);
    case Kind::kKubernetes:
      break;
  }
  return OwnNamespaces(cluster, config);
}

bool IsUsable(Cloud& cloud, const Object& object) {
  if (object.is_terminating || HasEnded(object)) return false;
  if (cloud.config->kind != Kind::kKubernetes || !HasPod(*cloud.config, object)) return true;
  ObjectCache& pods = cloud.watches.Pods();
  if (!pods.is_listed()) return true;
  auto pod = pods.objects().find(KeyOf(object.name, object.labels.at(kLabelKey)));
  return pod != pods.objects().end() && !HasEnded(pod->second);
}

std::string ExternalIdOf(Kind kind, const Object& object) {
  return kind == Kind::kOpenshiftPods ? fmt::format("{}-{}", object.name_space, object.name) : object.name;
}

namespace api = driver::cloud::api;
namespace json = boost::json;
using driver::cloud::MachineReport;

namespace {

constexpr Duration kReportInterval = std::chrono::seconds(60);
constexpr std::size_t kMaxHolderText = 400;

json::object OneSecondOfGrace() {
  return {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"gracePeriodSeconds", 1}};
}

json::object InBackground() {
  return {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"propagationPolicy", "Background"}};
}

// With a project go the rights in it, and the server refuses what one may not see.
bool CountsAsGone(Kind kind, const Failure& failure) {
  int status = api::StatusOf(failure);
  return status == 404 || (status == 403 && kind == Kind::kOpenshift);
}

Task<std::vector<Object>> PodsIn(Cloud& cloud, std::string name_space) {
  std::vector<Object> found;
  if (cloud.config->kind == Kind::kOpenshift) {
    Task<ObjectList> reading = cloud.cluster.List(InNamespace(name_space, "pods"), "");
    ObjectList list = co_await std::move(reading);
    co_return std::move(list.objects);
  }
  ObjectCache& pods = cloud.watches.Pods();
  co_await pods.WaitForFirstList();
  std::string beginning = KeyOf(name_space, "");
  for (auto pod = pods.objects().lower_bound(beginning);
       pod != pods.objects().end() && pod->first.starts_with(beginning); ++pod) {
    found.push_back(pod->second);
  }
  co_return found;
}

// The driver's own pods ignore the request to end, and would hold the namespace for 30 s.
Task<> EndOwnPods(Cloud& cloud, std::string name_space) {
  std::vector<Object> pods = co_await PodsIn(cloud, name_space);
  for (const Object& pod : pods) {
    if (!pod.runs_default_command || pod.is_terminating) continue;
    std::string path = InNamespace(name_space, "pods/") + pod.name;
    Task<bool> deletion = cloud.cluster.Delete(std::move(path), OneSecondOfGrace());
    co_await std::move(deletion);
  }
}

// Reports what holds it; true: it is gone.
Task<bool> ReportHeld(Cluster& cluster, Kind kind, MachineReport& machine, std::string path) {
  Outcome<json::object> read = co_await Attempt(cluster.Get(path));
  if (!read && CountsAsGone(kind, read.error())) co_return true;
  if (!read) read.error().Rethrow();
  std::string holders = WhatHolds(ReadObject(*read));
  machine.logger().Warning("{} of {} is still being deleted{}", path, cluster.name(),
                           holders.empty() ? "; the cluster does not say why" : ": " + holders);
  co_return false;
}

Task<> WaitUntilGone(Cloud& cloud, MachineReport& machine, Follower& follower, std::string path) {
  SteadyTime report_at = cloud.loop().SteadyNow() + kReportInterval;
  while (!follower.was_gone()) {
    co_await follower.Change(report_at);
    if (follower.was_gone() || cloud.loop().SteadyNow() < report_at) continue;
    report_at += kReportInterval;
    bool is_gone = co_await ReportHeld(cloud.cluster, cloud.config->kind, machine, path);
    if (is_gone) co_return;
  }
}

Task<> DeleteNamespace(Cloud& cloud, MachineReport& machine, std::string name) {
  machine.SetState("deleting the namespace");
  ObjectCache& namespaces = cloud.watches.Namespaces();
  Follower follower(namespaces, KeyOf("", name));
  auto deletion = cloud.watches.Deleting(name);
  // Only makes it faster.
  Outcome<> ended = co_await Attempt(EndOwnPods(cloud, name));
  if (!ended) machine.logger().Debug("Pods in {} are not ended before it: {}", name, ended.error().message());
  std::string path = namespaces.collection() + "/" + name;
  bool is_openshift = cloud.config->kind == Kind::kOpenshift;
  json::object options;
  if (!is_openshift) options = InBackground();
  Outcome<bool> existed = co_await Attempt(cloud.cluster.Delete(path, std::move(options)));
  if (!existed && CountsAsGone(cloud.config->kind, existed.error())) co_return;
  if (!existed) existed.error().Rethrow();
  if (!*existed) co_return;
  co_await WaitUntilGone(cloud, machine, follower, std::move(path));
}

Task<> DeletePod(Cloud& cloud, MachineReport& machine, std::string pool, std::string pod) {
  machine.SetState("deleting the pod");
  Follower follower(cloud.watches.PodsOfPool(pool), KeyOf(pool, pod));
  auto deletion = cloud.watches.Deleting(KeyOf(pool, pod));
  std::string path = InNamespace(pool, "pods/") + pod;
  const Object* known = follower.object();
  json::object options;
  if (known != nullptr && known->runs_default_command) options = OneSecondOfGrace();
  bool existed = co_await cloud.cluster.Delete(path, std::move(options));
  if (existed) co_await WaitUntilGone(cloud, machine, follower, std::move(path));
}

}  // namespace

Task<> DeleteMachine(Cloud& cloud, MachineReport& machine, std::string external_id, std::string pool) {
  if (cloud.config->kind == Kind::kOpenshiftPods) {
    std::string pod = PodOfExternalId(external_id, pool);
    return DeletePod(cloud, machine, std::move(pool), std::move(pod));
  }
  return DeleteNamespace(cloud, machine, std::move(external_id));
}

std::string WhatHolds(const Object& object) {
  std::vector<std::string> texts;
  if (!object.finalizers.empty()) texts.push_back("its finalizers " + Excerpt(Join(object.finalizers, ", ")));
  for (const Condition& condition : object.conditions) {
    if (condition.is_true && condition.type.starts_with("Namespace"))
      texts.push_back(Excerpt(condition.message, kMaxHolderText));
  }
  return Join(texts, "; ");
}

}  // namespace nodepool::drivers::kubernetes
