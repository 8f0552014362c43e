#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "driver/cloud/api/api_error.h"
#include "drivers/kubernetes/config/kubernetes_config.h"
#include "model/node.h"

namespace nodepool::drivers::kubernetes {

// A condition in an object's status.
struct Condition {
  std::string type;
  bool is_true = false;
  std::string reason;
  std::string message;
};

// A container in a pod's status.
struct Container {
  std::string name;
  std::string waiting_reason;  // empty: it does not wait
  std::string waiting_message;
  std::optional<int> exit_code;  // of its end
};

// What the drivers read of a namespace, a project, a pod, a node or a quota; empty where the kind has no such
// thing.
struct Object {
  std::string name_space;  // that it is in
  std::string name;
  std::string uid;
  std::map<std::string, std::string> labels;
  std::vector<std::string> finalizers;
  std::string requester;        // of a project: who asked for it
  bool is_terminating = false;  // it is being deleted
  std::string phase;
  std::string reason;   // of the status
  std::string message;  // of the status
  std::vector<Condition> conditions;
  std::vector<Container> containers;
  std::string node;                   // where a pod runs
  bool runs_default_command = false;  // a pod that ignores the request to end
  // Of a pod what it requests, of a node what pods may have there, of a quota its limits
  // (config/kubernetes_config.h).
  Resources amounts;
  Resources used;            // of a quota
  bool is_scoped = false;    // a quota for some pods of its namespace only
  bool is_closed = false;    // a node that takes no pods now: it is cordoned or not ready
  bool is_reserved = false;  // a node with a taint that keeps ordinary pods away
  std::size_t weight = 0;    // WeightOf its text; 0: it was read alone

  // "namespace/name"; "/name" of what is in no namespace.
  std::string key() const { return name_space + "/" + name; }
};

Object ReadObject(const boost::json::object& json);

// What an object counts in the bounds of lists and watches (driver/cloud/api/json_calls.h): the bytes of its
// text, and at least those that it takes here.
constexpr std::size_t WeightOf(std::size_t bytes_of_text) {
  return bytes_of_text < 1024 ? 1024 : bytes_of_text;
}

// The key of an object before it is known.
std::string KeyOf(const std::string& name_space, const std::string& name);

// Of a pod: none of its containers runs any more.
inline bool HasEnded(const Object& pod) { return pod.phase == "Failed" || pod.phase == "Succeeded"; }

// Paths of the API (driver-kubernetes.md 4.1).
inline constexpr const char* kNamespaces = "/api/v1/namespaces";
inline constexpr const char* kAllPods = "/api/v1/pods";
inline constexpr const char* kNodes = "/api/v1/nodes";
inline constexpr const char* kProjects = "/apis/project.openshift.io/v1/projects";
inline constexpr const char* kProjectRequests = "/apis/project.openshift.io/v1/projectrequests";
inline constexpr const char* kOwnUser = "/apis/user.openshift.io/v1/users/~";

// A collection of a namespace: InNamespace("main-1", "pods").
std::string InNamespace(std::string_view name, std::string_view collection);
// The same of the group of roles and their bindings.
std::string RbacInNamespace(std::string_view name, std::string_view collection);

// The kind of objects that a path is about, for metrics: "pods" of /api/v1/namespaces/main-1/pods/small.
std::string CollectionOf(std::string_view path);

// Reads a refusal, a Status object or plain text (driver-kubernetes.md 4.2); the code is the Status' reason,
// or the reason of its first cause where that says more: "NamespaceTerminating".
driver::cloud::api::Fault ReadStatus(int status, std::string_view body);

// Whether an error's text is the cluster's way to say that a quota is used up (driver-kubernetes.md 10).
bool MentionsQuota(std::string_view text);

// The resources, by their names in records, that such a text says are used up; empty: it names none.
std::set<std::string> ExceededResources(std::string_view text);

// The reason in a Failure that an API server caused; empty: another failure, or one without a reason.
std::string ReasonOf(const Failure& failure);

// A mapping of texts as JSON.
boost::json::object ToJson(const std::map<std::string, std::string>& texts);

// The body that creates a node's pod (driver-kubernetes.md 6).
boost::json::object PodBody(Kind kind, const KubernetesLabel& label, const std::string& name,
                            const std::map<std::string, std::string>& labels);

// The command of a pod that the driver makes without a custom spec: it sleeps, and ignores SIGTERM.
void SetDefaultCommand(boost::json::object& container);
// Whether the pod with this spec runs it.
bool RunsDefaultCommand(const boost::json::object& spec);

// What is made around a node's pod: a namespace or project, and in it an account with a token and rights
// (driver-kubernetes.md 5, 7).

// The account, and the secret with its token.
inline constexpr const char* kAccount = "zuul-worker";

using Labels = std::map<std::string, std::string>;

boost::json::object NamespaceBody(const std::string& name, const Labels& labels);
boost::json::object ProjectRequestBody(const std::string& name, const Labels& labels);
boost::json::object AccountBody();
// A secret that the cluster fills with a token of the account, without end.
boost::json::object TokenSecretBody();
// A token that ends after 30 days, or earlier where the cluster limits it.
boost::json::object TokenRequestBody();

// The rights of a pod's user, or of a namespace's. `is_full`: with those that older releases did not give,
// and that the launcher may lack.
boost::json::object RoleBody(bool has_pod, bool is_full);
boost::json::object RoleBindingBody(const std::string& name_space, bool has_pod);
// The account is the project's administrator.
boost::json::object AdminBindingBody(const std::string& project);

}  // namespace nodepool::drivers::kubernetes
