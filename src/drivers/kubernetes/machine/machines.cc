#include "drivers/kubernetes/machine/machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "async/task.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/url_text.h"
#include "driver/cloud/metadata.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/machine/create_machine.h"
#include "drivers/kubernetes/names.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;

namespace {

constexpr std::size_t kMaxEvents = 10;

[[noreturn]] void Fail(const PodState& state, const std::string& text) {
  using Kind = LaunchError::Kind;
  throw LaunchError(state.lacks_capacity ? Kind::kCapacity : Kind::kStatus, text);
}

// Follows one pod on its way, and remembers since when it has been in a state that must not last.
class PodWait {
 public:
  PodWait(Cloud& cloud, MachineReport& machine, const NodePlan& plan, std::string uid)
      : cloud_(cloud), machine_(machine), plan_(plan), uid_(std::move(uid)) {}

  Task<std::string> Run(Follower& follower) {
    while (true) {
      std::optional<Object> pod = Seen(follower);
      if (!pod && follower.was_gone()) FailAsDeleted();
      // Its time may be up only because the watch has not brought what happened since.
      if (cloud_.loop().SteadyNow() >= EndOf(StateOfSeen(pod))) pod = co_await Read(std::move(pod));
      PodState state = StateOfSeen(pod);
      if (state.kind == PodState::Kind::kRuns) co_return pod->node;
      if (state.kind == PodState::Kind::kFailed) Fail(state, state.text);
      SteadyTime until = EndOf(state);
      SteadyTime now = cloud_.loop().SteadyNow();
      if (now >= until && until < plan_.deadline) Fail(state, state.text);
      if (now >= plan_.deadline) Fail(state, fmt::format("pod failed to initialize ({})", state.text));
      machine_.SetState(state.text.empty() ? "starting the pod" : "starting the pod: " + state.text);
      co_await follower.Change(until);
    }
  }

 private:
  [[noreturn]] static void FailAsDeleted() { Fail({}, "the pod was deleted while it started"); }

  static PodState StateOfSeen(const std::optional<Object>& pod) { return pod ? StateOf(*pod) : PodState(); }

  // None: the watch has not brought it yet.
  std::optional<Object> Seen(const Follower& follower) const {
    const Object* object = follower.object();
    if (object == nullptr || object->uid != uid_) return std::nullopt;
    return *object;
  }

  // The pod as it is now; as it was seen where the cluster does not say.
  Task<std::optional<Object>> Read(std::optional<Object> seen) {
    std::string path = InNamespace(plan_.name_space, "pods/") + plan_.pod;
    Outcome<json::object> read = co_await Attempt(cloud_.cluster.Get(std::move(path)));
    if (FailedWith(read, Verdict::kNotFound)) FailAsDeleted();
    if (read) seen = ReadObject(*read);
    if (seen && seen->uid != uid_) FailAsDeleted();
    co_return seen;
  }

  SteadyTime EndOf(const PodState& state) {
    SteadyTime now = cloud_.loop().SteadyNow();
    if (state.cause != cause_) since_ = now;
    cause_ = state.cause;
    if (state.limit == Duration::max()) return plan_.deadline;
    return std::min(plan_.deadline, since_ + state.limit);
  }

  Cloud& cloud_;
  MachineReport& machine_;
  const NodePlan& plan_;
  std::string uid_;
  std::string cause_;
  SteadyTime since_{};
};

Task<std::string> FollowPod(Cloud& cloud, MachineReport& machine, const NodePlan& plan, std::string uid,
                            ObjectCache& pods) {
  Follower follower(pods, KeyOf(plan.name_space, plan.pod));
  PodWait wait(cloud, machine, plan, std::move(uid));
  std::string node = co_await wait.Run(follower);
  co_return node;
}

Task<std::string> FollowPodBy(Cloud& cloud, MachineReport& machine, const NodePlan& plan, std::string uid,
                              ObjectCache& pods, TaskGroup& tasks) {
  pods.Start(tasks);
  std::string node = co_await FollowPod(cloud, machine, plan, std::move(uid), pods);
  co_return node;
}

// Without rights beyond the project, for as long as the pod starts.
Task<std::string> FollowPodInProject(Cloud& cloud, MachineReport& machine, const NodePlan& plan,
                                     std::string uid) {
  TaskGroup tasks(cloud.loop(), cloud.logger);
  ObjectCache pods(cloud.loop(), cloud.environment.random, cloud.cluster,
                   {InNamespace(plan.name_space, "pods"), ""});
  Task<std::string> following = FollowPodBy(cloud, machine, plan, std::move(uid), pods, tasks);
  auto stop = [&tasks] { return tasks.Stop(); };
  std::string node = co_await WithCleanup(std::move(following), stop);
  co_return node;
}

Task<std::string> Follow(Cloud& cloud, MachineReport& machine, const NodePlan& plan, std::string uid) {
  switch (cloud.config->kind) {
    case Kind::kOpenshift:
      return FollowPodInProject(cloud, machine, plan, std::move(uid));
    case Kind::kOpenshiftPods:
      return FollowPod(cloud, machine, plan, std::move(uid), cloud.watches.PodsOfPool(plan.name_space));
    case Kind::kKubernetes:
      break;
  }
  return FollowPod(cloud, machine, plan, std::move(uid), cloud.watches.Pods());
}

// What the cluster noted about the pod; logged, since it vanishes with the namespace.
Task<> LogEvents(Cluster& cluster, const MachineReport& machine, const NodePlan& plan) {
  std::string selector = driver::cloud::api::PercentEncoded("involvedObject.name=" + plan.pod);
  std::string path = InNamespace(plan.name_space, "events?limit=100&fieldSelector=") + selector;
  Outcome<json::object> read = co_await Attempt(cluster.Get(std::move(path)));
  const json::array* items = read ? ArrayIn(*read, "items") : nullptr;
  if (items == nullptr) co_return;
  std::size_t first = items->size() - std::min(items->size(), kMaxEvents);
  for (std::size_t i = first; i < items->size(); ++i) {
    if (!items->at(i).is_object()) continue;
    const json::object& event = items->at(i).as_object();
    machine.logger().Info("The cluster about pod {} in {}: {}: {}", plan.pod, plan.name_space,
                          Excerpt(TextIn(event, "reason")), Excerpt(TextIn(event, "message"), 400));
  }
}

}  // namespace

Task<std::string> MakePod(Cloud& cloud, const NodePlan& plan) {
  std::string pods = InNamespace(plan.name_space, "pods");
  json::object made = co_await CreateInNew(cloud, pods, plan.pod_body);
  if (made.empty()) made = co_await cloud.cluster.Get(pods + "/" + plan.pod);
  co_return ReadObject(made).uid;
}

Task<std::string> WaitForPod(Cloud& cloud, MachineReport& machine, const NodePlan& plan, std::string uid) {
  Task<std::string> following = Follow(cloud, machine, plan, std::move(uid));
  Outcome<std::string> node = co_await Attempt(std::move(following));
  if (node) co_return std::move(*node);
  co_await LogEvents(cloud.cluster, machine, plan);
  node.error().Rethrow();
}

namespace {

// A registry may have a hiccup.
constexpr Duration kImageLimit = std::chrono::seconds(60);
constexpr Duration kConfigurationLimit = std::chrono::seconds(15);
constexpr std::size_t kMaxStateText = 600;

bool IsOneOf(std::string_view reason, std::initializer_list<std::string_view> reasons) {
  return std::ranges::find(reasons, reason) != reasons.end();
}

std::string Words(const std::string& reason, const std::string& message) {
  std::string text = message.empty() ? reason : reason.empty() ? message : reason + ": " + message;
  return Excerpt(text, kMaxStateText);
}

PodState Failed(std::string text) { return {PodState::Kind::kFailed, std::move(text)}; }

std::string Ending(const Object& pod) {
  std::string text = fmt::format("the pod has ended ({})", pod.phase);
  if (std::string why = Words(pod.reason, pod.message); !why.empty()) text += ": " + why;
  for (const Container& container : pod.containers) {
    if (container.exit_code)
      text += fmt::format("; container {} with code {}", container.name, *container.exit_code);
  }
  return text;
}

// What a container waits for.
PodState Waiting(const Container& container) {
  PodState state;
  state.text = Words(container.waiting_reason, container.waiting_message);
  if (IsOneOf(container.waiting_reason, {"ErrImagePull", "ImagePullBackOff"})) {
    state.limit = kImageLimit;
    state.cause = "image";
  } else if (IsOneOf(container.waiting_reason,
                     {"InvalidImageName", "CreateContainerConfigError", "ErrImageNeverPull",
                      "CreateContainerError", "RunContainerError"})) {
    state.limit = kConfigurationLimit;
    state.cause = container.waiting_reason;
  } else if (container.waiting_reason == "CrashLoopBackOff") {
    state.kind = PodState::Kind::kFailed;
  }
  return state;
}

}  // namespace

PodState StateOf(const Object& pod) {
  if (pod.phase == "Failed" || pod.phase == "Succeeded") return Failed(Ending(pod));
  if (pod.is_terminating) return Failed("the pod is being deleted");
  PodState state;
  state.text = pod.phase.empty() ? "Pending" : pod.phase;
  for (const Container& container : pod.containers) {
    if (container.waiting_reason.empty()) continue;
    PodState waiting = Waiting(container);
    if (waiting.kind == PodState::Kind::kFailed) return waiting;
    if (waiting.limit < state.limit || state.cause.empty()) state = std::move(waiting);
  }
  if (pod.phase == "Running") return {PodState::Kind::kRuns, "Running"};
  for (const Condition& condition : pod.conditions) {
    bool is_unschedulable =
        condition.type == "PodScheduled" && !condition.is_true && condition.reason == "Unschedulable";
    if (!is_unschedulable) continue;
    state.text = Words(condition.reason, condition.message);
    state.lacks_capacity = true;
  }
  return state;
}

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
