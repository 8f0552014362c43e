#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <optional>
#include <string>

#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/api/cloud.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/config/kubernetes_config.h"

namespace nodepool::drivers::kubernetes {

// Makes a node's namespace or project with an account and, where the label has one, its pod; in openshiftpods
// the pod alone. Ends when jobs can use it (driver-kubernetes.md 5 to 9).
Task<driver::cloud::Instance> CreateMachine(Cloud& cloud, driver::cloud::MachineReport& machine,
                                            driver::cloud::CreateParameters parameters);

// What is to be made for a node, composed before anything is made.
struct NodePlan {
  std::shared_ptr<const KubernetesLabel> label;
  // The node's own namespace or project, of a name that nothing else ever has; in openshiftpods the pool's,
  // and the pod's name is such a one.
  std::string name_space;
  std::string pod;  // its name; empty: the node is an empty namespace
  std::string external_id;
  Labels labels;                 // of namespace and pod
  boost::json::object pod_body;  // empty: no pod
  SteadyTime deadline;           // of the launch
};

NodePlan PlanNode(const KubernetesConfig& config, const driver::cloud::CreateParameters& parameters,
                  SteadyTime deadline, const log::Logger& logger);

// The pod in an external id of openshiftpods, of which the pool's name is the beginning.
std::string PodOfExternalId(const std::string& external_id, const std::string& pool);

// Makes the node's own namespace, or of OpenShift its project.
Task<> MakeNamespace(Cloud& cloud, const NodePlan& plan);

// The name of our own account, as OpenShift notes it in projects that we ask for; empty: it is not known.
Task<std::string> OwnName(Cluster& cluster);

// Creates an object in a namespace that may have been made a moment ago, where the cluster's own accounts and
// the caller's rights may still be missing: such refusals are repeated for ten seconds. An object that exists
// already is this attempt's, since the namespace or the object's own name is: the answer to an earlier call
// was lost. The result is empty then (driver-kubernetes.md 4.2).
Task<boost::json::object> CreateInNew(Cloud& cloud, std::string collection, boost::json::object body);

// From when to when a token that was asked for lasts.
struct TokenLife {
  WallTime begin;
  WallTime end;
};

// What gives access to a node's namespace. Secret.
struct NodeToken {
  std::string token;
  std::string ca_base64;  // the API server's authorities, PEM in base64; empty: not known
  std::optional<TokenLife> life = std::nullopt;  // none: it ends with the namespace
};

// Makes the account of the node's namespace, its rights, and the secret for its token. False: the cluster
// does not allow such a secret.
Task<bool> MakeAccount(Cloud& cloud, const NodePlan& plan);

// The account's token: that in its secret, once the cluster has filled it; if there is no secret, or the
// cluster does not fill it within ten seconds, one that the cluster is asked for, which ends after 30 days,
// or earlier (driver-kubernetes.md 5.3).
Task<NodeToken> TokenOfAccount(Cloud& cloud, const NodePlan& plan, bool has_secret);

// Asks the cluster for another token of the account of a node's namespace.
Task<NodeToken> RequestToken(Cloud& cloud, std::string name_space);

// The life of a node's token as its record keeps it: driver_data.
boost::json::value ToDriverData(const TokenLife& life);

// A token that was asked for is renewed in the second half of its life, and is no longer handed out in the
// last quarter. In openshiftpods that of a record is renewed when our own has become another one.
Task<driver::cloud::AccessState> StateOfAccess(Cloud& cloud, driver::cloud::NodeAccess access);

// The same access with a new token.
Task<driver::cloud::NodeAccess> RenewAccess(Cloud& cloud, driver::cloud::NodeAccess access);

}  // namespace nodepool::drivers::kubernetes
