#include "web/requests/token_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nodepool::web {
namespace {

constexpr int kDefaultPriority = 200;

bool Allows(const config::WebToken& token, const LabelName& label) {
  if (token.labels.empty()) return true;
  return std::ranges::any_of(
      token.labels, [&](const std::string& pattern) { return config::MatchesPattern(label.value, pattern); });
}

}  // namespace

std::string ApplyToken(const config::WebToken& token, OrderBody& body) {
  launcher::LeaseOrder& order = body.order;
  for (const LabelName& label : order.labels) {
    if (Allows(token, label)) continue;
    return fmt::format("The token {} allows the labels {}, not {}.", token.name, Join(token.labels, ", "),
                       Excerpt(label.value));
  }
  order.priority = body.priority.value_or(static_cast<int>(token.priority.value_or(kDefaultPriority)));
  if (token.priority && order.priority < *token.priority)
    return fmt::format("The token {} allows priorities from {} on, not {}.", token.name, *token.priority,
                       order.priority);
  if (token.tenant && order.tenant && *order.tenant != *token.tenant)
    return fmt::format("The token {} is for the tenant {}, not {}.", token.name, *token.tenant,
                       Excerpt(*order.tenant));
  if (token.max_nodes && order.labels.size() > static_cast<std::size_t>(*token.max_nodes))
    return fmt::format("The token {} allows {} nodes at a time, not {}.", token.name, *token.max_nodes,
                       order.labels.size());
  if (token.max_nodes) order.max_nodes = static_cast<std::size_t>(*token.max_nodes);
  if (token.tenant) order.tenant = token.tenant;
  if (!order.requestor) order.requestor = token.name;
  order.client = token.name;
  return "";
}

}  // namespace nodepool::web
