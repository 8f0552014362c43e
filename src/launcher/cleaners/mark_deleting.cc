#include "launcher/cleaners/mark_deleting.h"

#include "launcher/lock_unclaimed.h"
#include "launcher/stats/stats_metrics.h"

namespace nodepool::launcher {

Task<> MarkDeleting(Context& context, const ProviderManager& providers, const log::Logger& logger, NodeId id,
                    std::string kind, std::string why, std::function<bool(const Node&)> applies) {
  const store::StoredNode* cached = context.caches.nodes.Find(id);
  if (cached == nullptr || cached->is_locked() || !providers.Manages(cached->record.provider)) co_return;
  auto node = co_await LockUnclaimed(context, id);
  if (!node) co_return;
  WallTime now = context.loop.Now();
  auto mark = [now, applies](Node& record) {
    if (!applies(record)) return store::Change::kSkip;
    record.SetState(NodeState::kDeleting, now);
    return store::Change::kWrite;
  };
  bool is_marked = co_await node->Update(mark);
  co_await node->Unlock();
  if (!is_marked) co_return;
  context.metrics.Add(stats::kCleaned, {kind});
  logger.About(log::OfNode(id)).Info("Node will be deleted: {}", why);
}

}  // namespace nodepool::launcher
