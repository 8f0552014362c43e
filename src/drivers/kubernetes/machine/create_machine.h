#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/api/cloud.h"
#include "drivers/kubernetes/bodies.h"
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

}  // namespace nodepool::drivers::kubernetes
