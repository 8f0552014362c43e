#pragma once

#include <optional>
#include <string_view>

namespace nodepool::drivers::kubernetes {

// The value of a quantity as Kubernetes writes it: "500m" is 0.5, "2Gi" is 2147483648 (driver-kubernetes.md
// 14.2). nullopt: it is none, or negative.
std::optional<double> ParseQuantity(std::string_view text);

}  // namespace nodepool::drivers::kubernetes
