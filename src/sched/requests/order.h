#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "model/node_request.h"

namespace nodepool::sched {

// The order in which requests are served (launcher.md 8, step 5): precedence as text, then relative
// priority as a number, then age.
struct ServiceOrder {
  std::string precedence;
  double relative_priority = 0;
  std::uint64_t age = 0;  // the smaller, the older
  std::string sequence;
  auto operator<=>(const ServiceOrder&) const = default;
};

// nullopt for an id that ParseRequestId refuses.
std::optional<ServiceOrder> OrderOf(const RequestId& id, const NodeRequest& request);

}  // namespace nodepool::sched
