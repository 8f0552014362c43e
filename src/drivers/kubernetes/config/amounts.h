#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "model/resources.h"

namespace nodepool::drivers::kubernetes {

// Quantities as Kubernetes writes them, {"cpu": "500m", "memory": "2Gi"}, as amounts of a node's record:
// `cores`, `ram` in MiB, `ephemeral-storage` in MB, `instances` for pods, others by their name
// (driver-kubernetes.md 14.1). A quota's `requests.cpu` is its `cpu`; the smaller one counts. What is no
// quantity is left out.
Resources AmountsOf(const boost::json::object& quantities);

// The name in records of a resource that Kubernetes calls `key`: "cores" of "cpu" and "requests.cpu".
std::string NameInRecords(std::string_view key);

// What the scheduler counts for a pod with this spec: the requests of its containers together, or those of an
// init container where they are more, and the overhead. Without the pod itself: `instances` is absent.
Resources RequestsOf(const boost::json::object& pod_spec);

// The value of a quantity as Kubernetes writes it: "500m" is 0.5, "2Gi" is 2147483648 (driver-kubernetes.md
// 14.2). nullopt: it is none, or negative.
std::optional<double> ParseQuantity(std::string_view text);

}  // namespace nodepool::drivers::kubernetes
