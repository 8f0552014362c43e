#include "drivers/kubernetes/api/object.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_fields.h"
#include "drivers/kubernetes/config/amounts.h"
#include "drivers/kubernetes/objects/default_command.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

namespace {

// The cluster itself taints nodes that are cordoned, not ready, or short of something; such taints pass.
constexpr std::string_view kPassingTaints[] = {"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"};

void ReadMetadata(const json::object& metadata, Object& object) {
  object.name_space = TextIn(metadata, "namespace");
  object.name = TextIn(metadata, "name");
  object.uid = TextIn(metadata, "uid");
  object.is_terminating = !TextIn(metadata, "deletionTimestamp").empty();
  if (const json::object* labels = ObjectIn(metadata, "labels")) {
    for (const auto& [key, value] : *labels) object.labels[std::string(key)] = TextIn(*labels, key);
  }
  if (const json::array* finalizers = ArrayIn(metadata, "finalizers")) {
    for (const json::value& finalizer : *finalizers) {
      if (finalizer.is_string()) object.finalizers.emplace_back(finalizer.as_string());
    }
  }
  if (const json::object* annotations = ObjectIn(metadata, "annotations"))
    object.requester = TextIn(*annotations, "openshift.io/requester");
}

Container ReadContainer(const json::object& status) {
  Container container;
  container.name = TextIn(status, "name");
  const json::object* state = ObjectIn(status, "state");
  if (state == nullptr) return container;
  if (const json::object* waiting = ObjectIn(*state, "waiting")) {
    container.waiting_reason = TextIn(*waiting, "reason");
    container.waiting_message = TextIn(*waiting, "message");
  }
  if (const json::object* ended = ObjectIn(*state, "terminated"))
    container.exit_code = static_cast<int>(NumberIn(*ended, "exitCode"));
  return container;
}

void ReadStatusOf(const json::object& status, Object& object) {
  object.phase = TextIn(status, "phase");
  object.reason = TextIn(status, "reason");
  object.message = TextIn(status, "message");
  if (object.phase == "Terminating") object.is_terminating = true;
  if (const json::object* allocatable = ObjectIn(status, "allocatable"))
    object.amounts = AmountsOf(*allocatable);
  if (const json::object* hard = ObjectIn(status, "hard")) object.amounts = AmountsOf(*hard);
  if (const json::object* used = ObjectIn(status, "used")) object.used = AmountsOf(*used);
  if (const json::array* conditions = ArrayIn(status, "conditions")) {
    for (const json::value& item : *conditions) {
      if (!item.is_object()) continue;
      const json::object& condition = item.as_object();
      object.conditions.push_back({TextIn(condition, "type"), TextIn(condition, "status") == "True",
                                   TextIn(condition, "reason"), TextIn(condition, "message")});
    }
  }
  for (const char* kind : {"initContainerStatuses", "containerStatuses"}) {
    const json::array* containers = ArrayIn(status, kind);
    if (containers == nullptr) continue;
    for (const json::value& container : *containers) {
      if (container.is_object()) object.containers.push_back(ReadContainer(container.as_object()));
    }
  }
}

void ReadTaints(const json::array& taints, Object& object) {
  for (const json::value& item : taints) {
    if (!item.is_object() || TextIn(item.as_object(), "effect") == "PreferNoSchedule") continue;
    std::string key = TextIn(item.as_object(), "key");
    bool is_passing =
        std::ranges::any_of(kPassingTaints, [&](auto prefix) { return key.starts_with(prefix); });
    (is_passing ? object.is_closed : object.is_reserved) = true;
  }
}

void ReadSpecOf(const json::object& spec, Object& object) {
  object.node = TextIn(spec, "nodeName");
  object.runs_default_command = RunsDefaultCommand(spec);
  object.amounts = RequestsOf(spec);
  if (TruthIn(spec, "unschedulable")) object.is_closed = true;
  if (const json::array* taints = ArrayIn(spec, "taints")) ReadTaints(*taints, object);
  object.is_scoped = ArrayIn(spec, "scopes") != nullptr || ObjectIn(spec, "scopeSelector") != nullptr;
}

}  // namespace

Object ReadObject(const json::object& source) {
  Object object;
  if (const json::object* metadata = ObjectIn(source, "metadata")) ReadMetadata(*metadata, object);
  if (const json::object* spec = ObjectIn(source, "spec")) ReadSpecOf(*spec, object);
  if (const json::object* status = ObjectIn(source, "status")) ReadStatusOf(*status, object);
  return object;
}

std::string KeyOf(const std::string& name_space, const std::string& name) { return name_space + "/" + name; }

}  // namespace nodepool::drivers::kubernetes
