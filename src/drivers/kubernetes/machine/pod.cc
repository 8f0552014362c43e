#include "drivers/kubernetes/machine/pod.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "async/cleanup.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/machine/namespace.h"

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

}  // namespace nodepool::drivers::kubernetes
