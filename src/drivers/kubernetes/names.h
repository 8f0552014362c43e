#pragma once

#include <map>
#include <string>
#include <string_view>

#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/config/kubernetes_config.h"

namespace nodepool::drivers::kubernetes {

// Names and label values that an API server accepts (driver-kubernetes.md 2.5).
bool IsLabelValue(std::string_view text);
// Lower-case letters, digits and "-"; not "-" at the ends.
bool IsDnsLabel(std::string_view text, std::size_t most = 63);

// `text` as a label value: what is not allowed becomes "-", the rest is shortened.
std::string ToLabelValue(std::string_view text);

// The name in the cluster of what an attempt makes for a node: `beginning`, cut where it is too long, the
// node's id and the first 8 digits of the attempt's mark. Nothing else ever has this name, so what exists
// under it is this attempt's (driver-kubernetes.md 4.2).
std::string NameForNode(std::string_view beginning, std::string_view node_id, std::string_view attempt_mark);
// The node's id in such a name with this beginning, or in one without a mark, as the Python implementation
// gives; empty: it is another name.
std::string NodeIdIn(std::string_view name, std::string_view beginning);

// Why the API server would refuse the nodes of a label; empty: it would not.
std::string FaultOfNames(const KubernetesConfig& provider, const driver::PoolConfig& pool,
                         const KubernetesLabel& label);

inline constexpr const char* kLabelKey = "nodepool_node_label";

// The labels of a node's namespace and pod (driver-kubernetes.md 5.2). A template that cannot be filled is
// logged and left out.
std::map<std::string, std::string> LabelsOf(const KubernetesLabel& label,
                                            const driver::cloud::CreateParameters& parameters,
                                            const log::Logger& logger);

}  // namespace nodepool::drivers::kubernetes
