#include "drivers/kubernetes/machine/pod_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace nodepool::drivers::kubernetes {

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
