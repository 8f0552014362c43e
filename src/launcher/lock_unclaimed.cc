#include "launcher/lock_unclaimed.h"

namespace nodepool::launcher {

Task<std::optional<store::LockedNode>> LockUnclaimed(Context& context, NodeId id) {
  if (context.ledger.IsClaimed(id)) co_return std::nullopt;
  NodeClaim claim(context.ledger, id);
  std::optional<store::LockedNode> node = co_await context.store.nodes.TryLock(std::move(id));
  co_return node;
}

}  // namespace nodepool::launcher
