#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <string>

#include "drivers/kubernetes/config/kubernetes_config.h"

namespace nodepool::drivers::kubernetes {

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
