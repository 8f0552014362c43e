#include "drivers/kubernetes/bodies.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "base/json_fields.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

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
