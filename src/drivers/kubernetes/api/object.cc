#include "drivers/kubernetes/api/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <vector>

#include "base/json_fields.h"
#include "base/text.h"
#include "drivers/kubernetes/config/kubernetes_config.h"

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

std::string InNamespace(std::string_view name, std::string_view collection) {
  return std::string(kNamespaces) + "/" + std::string(name) + "/" + std::string(collection);
}

std::string RbacInNamespace(std::string_view name, std::string_view collection) {
  return "/apis/rbac.authorization.k8s.io/v1/namespaces/" + std::string(name) + "/" + std::string(collection);
}

std::string CollectionOf(std::string_view path) {
  std::vector<std::string> parts = Split(path.substr(0, path.find('?')), '/');
  // "", api, v1, ... or "", apis, group, v1, ...
  std::size_t first = parts.size() > 1 && parts[1] == "apis" ? 4 : 3;
  if (parts.size() <= first) return "api";
  bool is_inside = parts[first] == "namespaces" && parts.size() > first + 2;
  return is_inside ? parts[first + 2] : parts[first];
}

namespace api = driver::cloud::api;

namespace {

constexpr std::string_view kTerminating = "NamespaceTerminating";

constexpr std::string_view kExceeded = "exceeded quota";

// Of OpenShift: "user ci cannot create more than 2 project(s)."
bool IsProjectLimit(const std::string& lower) {
  return lower.find("cannot create more than") != std::string::npos &&
         lower.find("project") != std::string::npos;
}

bool HasCause(const json::object& status, std::string_view reason) {
  const json::object* details = ObjectIn(status, "details");
  const json::array* causes = details == nullptr ? nullptr : ArrayIn(*details, "causes");
  if (causes == nullptr) return false;
  for (const json::value& cause : *causes) {
    if (cause.is_object() && TextIn(cause.as_object(), "reason") == reason) return true;
  }
  return false;
}

Verdict VerdictOfStatus(int status, const api::Fault& fault) {
  if (MentionsQuota(fault.text)) return Verdict::kQuota;
  // Of this namespace alone: another attempt has another one.
  if (fault.code == kTerminating) return Verdict::kFail;
  return api::VerdictOfStatus(status);
}

}  // namespace

bool MentionsQuota(std::string_view text) {
  std::string lower = Lower(text);
  return lower.find(kExceeded) != std::string::npos || IsProjectLimit(lower);
}

// "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1,pods=1, used: ..., limited: ...": what is not
// exceeded is not among them.
std::set<std::string> ExceededResources(std::string_view text) {
  std::string lower = Lower(text);
  if (IsProjectLimit(lower)) return {resource::kInstances};
  constexpr std::string_view kRequested = "requested: ";
  std::size_t begin = lower.find(kRequested, lower.find(kExceeded));
  if (begin == std::string::npos) return {};
  begin += kRequested.size();
  std::set<std::string> names;
  for (const std::string& part : Split(lower.substr(begin, lower.find(", ", begin) - begin), ',')) {
    std::size_t equals = part.find('=');
    if (equals != std::string::npos) names.insert(NameInRecords(part.substr(0, equals)));
  }
  return names;
}

api::Fault ReadStatus(int status, std::string_view body) {
  api::Fault fault;
  fault.text = api::FaultText(body);
  boost::system::error_code error;
  json::value parsed = json::parse(body.substr(0, 64 * 1024), error);
  if (!error && parsed.is_object()) {
    fault.code = TextIn(parsed.as_object(), "reason");
    if (HasCause(parsed.as_object(), kTerminating)) fault.code = kTerminating;
  }
  fault.verdict = VerdictOfStatus(status, fault);
  return fault;
}

std::string ReasonOf(const Failure& failure) {
  try {
    failure.Rethrow();
  } catch (const api::ApiError& error) {
    return error.code();
  } catch (...) {
    return "";
  }
}

namespace {

json::object Amounts(const PodAmounts& amounts, const KubernetesLabel& label) {
  json::object result;
  if (amounts.cpu.value_or(0) != 0) result["cpu"] = *amounts.cpu;
  if (amounts.memory.value_or(0) != 0) result["memory"] = fmt::format("{}Mi", *amounts.memory);
  if (amounts.storage.value_or(0) != 0) result["ephemeral-storage"] = fmt::format("{}M", *amounts.storage);
  if (label.gpu && label.gpu_resource) result[*label.gpu_resource] = fmt::format("{:.2f}", *label.gpu);
  return result;
}

json::object ContainerOf(const KubernetesLabel& label) {
  json::object container = {{"name", label.name.str()},
                            {"image", label.image.value_or("")},
                            {"imagePullPolicy", label.image_pull},
                            {"env", label.env}};
  SetDefaultCommand(container);
  json::object resources;
  if (json::object requests = Amounts(label.requests, label); !requests.empty())
    resources["requests"] = std::move(requests);
  if (json::object limits = Amounts(label.limits, label); !limits.empty())
    resources["limits"] = std::move(limits);
  if (!resources.empty()) container["resources"] = std::move(resources);
  if (!label.volume_mounts.empty()) container["volumeMounts"] = label.volume_mounts;
  if (label.privileged) container["securityContext"] = json::object{{"privileged", *label.privileged}};
  return container;
}

json::object SpecOf(Kind kind, const KubernetesLabel& label) {
  if (!label.spec.empty()) return label.spec;
  json::object spec;
  spec["containers"] = json::array{ContainerOf(label)};
  if (kind != Kind::kKubernetes) spec["imagePullSecrets"] = label.image_pull_secrets;
  if (!label.node_selector.empty()) spec["nodeSelector"] = ToJson(label.node_selector);
  if (label.scheduler_name) spec["schedulerName"] = *label.scheduler_name;
  if (!label.volumes.empty()) spec["volumes"] = label.volumes;
  return spec;
}

}  // namespace

json::object ToJson(const std::map<std::string, std::string>& texts) {
  json::object result;
  for (const auto& [key, text] : texts) result[key] = text;
  return result;
}

json::object PodBody(Kind kind, const KubernetesLabel& label, const std::string& name,
                     const std::map<std::string, std::string>& labels) {
  json::object metadata = {
      {"name", name}, {"labels", ToJson(labels)}, {"annotations", ToJson(label.annotations)}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", std::move(metadata)},
          {"spec", SpecOf(kind, label)}};
}

namespace {

const json::array& Command() {
  static const json::array command = {"/bin/sh", "-c"};
  return command;
}

const json::array& Arguments() {
  static const json::array arguments = {"while true; do sleep 30; done;"};
  return arguments;
}

}  // namespace

void SetDefaultCommand(json::object& container) {
  container["command"] = Command();
  container["args"] = Arguments();
}

bool RunsDefaultCommand(const json::object& spec) {
  const json::array* containers = ArrayIn(spec, "containers");
  if (containers == nullptr || containers->size() != 1) return false;
  const json::array* command = ArrayIn(containers->front(), "command");
  const json::array* arguments = ArrayIn(containers->front(), "args");
  return command != nullptr && arguments != nullptr && *command == Command() && *arguments == Arguments();
}

namespace {

constexpr const char* kRbac = "rbac.authorization.k8s.io";
// Longer than jobs and held nodes: nobody renews the token of a node in use.
constexpr int kTokenSeconds = 30 * 86'400;

json::array AllVerbs() { return {"create", "delete", "get", "list", "patch", "update", "watch"}; }

json::object Rule(const char* group, json::array resources, json::array verbs) {
  return {
      {"apiGroups", json::array{group}}, {"resources", std::move(resources)}, {"verbs", std::move(verbs)}};
}

json::array RulesOfPod(bool is_full) {
  json::array rules = {Rule("", {"pods"}, {"get", "list"}), Rule("", {"pods/exec"}, AllVerbs()),
                       Rule("", {"pods/logs"}, AllVerbs()), Rule("", {"pods/portforward"}, AllVerbs())};
  if (is_full) rules.push_back(Rule("", {"pods/log"}, AllVerbs()));
  return rules;
}

json::array RulesOfNamespace(bool is_full) {
  json::array rules = {Rule("",
                            {"pods", "pods/exec", "pods/log", "pods/portforward", "services", "endpoints",
                             "crontabs", "jobs", "deployments", "replicasets", "configmaps", "secrets"},
                            AllVerbs())};
  if (!is_full) return rules;
  rules.push_back(Rule("apps", {"deployments", "replicasets", "statefulsets", "daemonsets"}, AllVerbs()));
  rules.push_back(Rule("batch", {"jobs", "cronjobs"}, AllVerbs()));
  rules.push_back(Rule("", {"persistentvolumeclaims"}, AllVerbs()));
  rules.push_back(Rule("", {"events"}, {"get", "list", "watch"}));
  return rules;
}

const char* RoleName(bool has_pod) { return has_pod ? "zuul-restricted" : "zuul"; }

json::object Binding(const char* name, json::object role, const std::string& name_space) {
  json::object subject = {{"kind", "ServiceAccount"}, {"name", kAccount}, {"namespace", name_space}};
  role["apiGroup"] = kRbac;
  return {{"apiVersion", std::string(kRbac) + "/v1"},
          {"kind", "RoleBinding"},
          {"metadata", json::object{{"name", name}}},
          {"roleRef", std::move(role)},
          {"subjects", json::array{std::move(subject)}}};
}

json::object Named(const std::string& name, const Labels& labels) {
  return {{"name", name}, {"labels", ToJson(labels)}};
}

}  // namespace

json::object NamespaceBody(const std::string& name, const Labels& labels) {
  return {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", Named(name, labels)}};
}

json::object ProjectRequestBody(const std::string& name, const Labels& labels) {
  return {{"apiVersion", "project.openshift.io/v1"},
          {"kind", "ProjectRequest"},
          {"metadata", Named(name, labels)}};
}

json::object AccountBody() {
  return {{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", json::object{{"name", kAccount}}}};
}

json::object TokenSecretBody() {
  json::object annotations = {{"kubernetes.io/service-account.name", kAccount}};
  json::object metadata = {{"name", kAccount}, {"annotations", std::move(annotations)}};
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"type", "kubernetes.io/service-account-token"},
          {"metadata", std::move(metadata)}};
}

json::object TokenRequestBody() {
  return {{"apiVersion", "authentication.k8s.io/v1"},
          {"kind", "TokenRequest"},
          {"spec", json::object{{"expirationSeconds", kTokenSeconds}}}};
}

json::object RoleBody(bool has_pod, bool is_full) {
  return {{"apiVersion", std::string(kRbac) + "/v1"},
          {"kind", "Role"},
          {"metadata", json::object{{"name", RoleName(has_pod)}}},
          {"rules", has_pod ? RulesOfPod(is_full) : RulesOfNamespace(is_full)}};
}

json::object RoleBindingBody(const std::string& name_space, bool has_pod) {
  return Binding("zuul-role", {{"kind", "Role"}, {"name", RoleName(has_pod)}}, name_space);
}

json::object AdminBindingBody(const std::string& project) {
  return Binding("admin-0", {{"kind", "ClusterRole"}, {"name", "admin"}}, project);
}

}  // namespace nodepool::drivers::kubernetes
