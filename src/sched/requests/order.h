#pragma once

#include <compare>
#include <optional>
#include <string>

#include "base/ids.h"
#include "model/node_request.h"

namespace nodepool::sched {

// The order in which requests are served (launcher.md 8, step 5): precedence as
// text, then relative priority as a number, then age by the sequence as text.
struct ServiceOrder {
  std::string precedence;
  double relative_priority = 0;
  std::string sequence;
  auto operator<=>(const ServiceOrder&) const = default;
};

// nullopt for an id that is not "<precedence>-<sequence>".
std::optional<ServiceOrder> OrderOf(const RequestId& id, const NodeRequest& request);

}  // namespace nodepool::sched
