#include "launcher/requests/promises.h"

#include <utility>

#include "base/find_or_empty.h"

namespace nodepool::launcher {

Promises::Promises(store::NodeCache& nodes)
    : nodes_(nodes),
      subscription_(nodes.OnChange(
          [this](const NodeId&, const store::StoredNode* before, const store::StoredNode* after) {
            if (before != nullptr) Recount(before->record.allocated_to);
            if (after != nullptr) Recount(after->record.allocated_to);
          })) {}

void Promises::Make(const RequestId& request, std::string tenant, Resources need, LauncherId launcher) {
  Release(request);
  promises_[request] = {std::move(tenant), std::move(need), std::move(launcher), {}};
  Recount(request);
}

void Promises::Release(const RequestId& request) {
  auto promise = promises_.find(request);
  if (promise == promises_.end()) return;
  open_[promise->second.tenant].Subtract(promise->second.open);
  promises_.erase(promise);
}

const Resources& Promises::Of(const std::string& tenant) const { return FindOrEmpty(open_, tenant).total(); }

void Promises::Recount(const RequestId& request) {
  auto found = promises_.find(request);
  if (found == promises_.end()) return;
  Promise& promise = found->second;
  Resources open = promise.need;
  for (const NodeId& id : nodes_.OfRequest(request)) {
    const Node& node = nodes_.Find(id)->record;
    if (IsPart(promise, node)) Subtract(open, node.resources.value_or(Resources{}));
  }
  ResourceSum& sum = open_[promise.tenant];
  sum.Subtract(promise.open);
  sum.Add(open);
  promise.open = std::move(open);
}

// Not what an earlier attempt for the same request left.
bool Promises::IsPart(const Promise& promise, const Node& node) const {
  if (node.tenant_name != promise.tenant) return false;
  bool is_coming = node.state == NodeState::kInit || node.state == NodeState::kBuilding;
  return node.state == NodeState::kReady || (is_coming && node.launcher == promise.launcher.value);
}

}  // namespace nodepool::launcher
