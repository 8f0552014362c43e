#pragma once

#include <map>
#include <string>

#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/config/kubernetes_config.h"

namespace nodepool::drivers::kubernetes {

inline constexpr const char* kLabelKey = "nodepool_node_label";

// The labels of a node's namespace and pod (driver-kubernetes.md 5.2). A template that cannot be filled is
// logged and left out.
std::map<std::string, std::string> LabelsOf(const KubernetesLabel& label,
                                            const driver::cloud::CreateParameters& parameters,
                                            const log::Logger& logger);

}  // namespace nodepool::drivers::kubernetes
