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

}  // namespace nodepool::drivers::kubernetes
