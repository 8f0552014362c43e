#pragma once

#include <string>
#include <string_view>

#include "drivers/kubernetes/config/kubernetes_config.h"

namespace nodepool::drivers::kubernetes {

// Names and label values that an API server accepts (driver-kubernetes.md 2.5).
bool IsLabelValue(std::string_view text);
// Lower-case letters, digits and "-"; not "-" at the ends.
bool IsDnsLabel(std::string_view text, std::size_t most = 63);

// `text` as a label value: what is not allowed becomes "-", the rest is shortened.
std::string ToLabelValue(std::string_view text);

// Why the API server would refuse the nodes of a label; empty: it would not.
std::string FaultOfNames(const KubernetesConfig& provider, const driver::PoolConfig& pool,
                         const KubernetesLabel& label);

}  // namespace nodepool::drivers::kubernetes
