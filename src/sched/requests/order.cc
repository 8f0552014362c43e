#include "sched/requests/order.h"

namespace nodepool::sched {

std::optional<ServiceOrder> OrderOf(const RequestId& id, const NodeRequest& request) {
  auto parts = ParseRequestId(id);
  if (!parts) return std::nullopt;
  return ServiceOrder{parts->precedence, request.relative_priority, parts->sequence};
}

}  // namespace nodepool::sched
