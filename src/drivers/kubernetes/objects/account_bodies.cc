#include "drivers/kubernetes/objects/account_bodies.h"

#include <boost/json/array.hpp>

#include "drivers/kubernetes/objects/pod_body.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

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
