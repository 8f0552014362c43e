#include "drivers/kubernetes/machine/node_plan.h"

#include <fmt/format.h>

#include "driver/cloud/metadata.h"
#include "drivers/kubernetes/config/names.h"
#include "drivers/kubernetes/objects/labels.h"
#include "drivers/kubernetes/objects/pod_body.h"

namespace nodepool::drivers::kubernetes {

NodePlan PlanNode(const KubernetesConfig& config, const driver::cloud::CreateParameters& parameters,
                  SteadyTime deadline, const log::Logger& logger) {
  NodePlan plan;
  plan.label = std::dynamic_pointer_cast<const KubernetesLabel>(parameters.label);
  if (!plan.label) throw Error(Verdict::kFail, "the label's configuration was made by another driver");
  plan.deadline = deadline;
  const std::string& node_id = parameters.metadata.at(driver::cloud::kNodeKey);
  const std::string& pool = parameters.pool->name.str();
  const std::string& label = plan.label->name.str();
  if (config.kind == Kind::kOpenshiftPods) {
    plan.name_space = pool;
    plan.pod = NameForNode(label, node_id, parameters.attempt_mark);
    plan.external_id = fmt::format("{}-{}", pool, plan.pod);
  } else {
    plan.name_space = NameForNode(pool, node_id, parameters.attempt_mark);
    if (plan.label->has_pod) plan.pod = label;
    plan.external_id = plan.name_space;
  }
  plan.labels = LabelsOf(*plan.label, parameters, logger);
  if (!plan.pod.empty()) plan.pod_body = PodBody(config.kind, *plan.label, plan.pod, plan.labels);
  return plan;
}

std::string PodOfExternalId(const std::string& external_id, const std::string& pool) {
  std::string beginning = pool + "-";
  if (!external_id.starts_with(beginning)) {
    throw Error(Verdict::kFail,
                fmt::format("{} is not the external id of a pod of pool {}", external_id, pool));
  }
  return external_id.substr(beginning.size());
}

}  // namespace nodepool::drivers::kubernetes
