#include "sched/requests/order.h"

#include <charconv>
#include <limits>

namespace nodepool::sched {
namespace {

// The sequence as a server counts: with 32 bits and a sign, so that -2147483648 follows 2147483647.
// What is no number comes last.
std::uint64_t AgeOf(const std::string& sequence) {
  std::int64_t number = 0;
  const char* end = sequence.data() + sequence.size();
  auto [rest, error] = std::from_chars(sequence.data(), end, number);
  if (error != std::errc() || rest != end) return std::numeric_limits<std::uint64_t>::max();
  return number < 0 ? static_cast<std::uint32_t>(number) : static_cast<std::uint64_t>(number);
}

}  // namespace

std::optional<ServiceOrder> OrderOf(const RequestId& id, const NodeRequest& request) {
  auto parts = ParseRequestId(id);
  if (!parts) return std::nullopt;
  return ServiceOrder{parts->precedence, request.relative_priority, AgeOf(parts->sequence), parts->sequence};
}

}  // namespace nodepool::sched
