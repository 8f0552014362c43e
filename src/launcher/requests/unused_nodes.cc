#include "launcher/requests/unused_nodes.h"

#include <algorithm>
#include <map>

namespace nodepool::launcher {

UnusedNodes::UnusedNodes(Context& context, const Pool& pool)
    : context_(context),
      pool_(pool),
      logger_(fmt::format("nodepool.PoolWorker.{}-{}", pool.key().provider, pool.key().pool)),
      tasks_(context.loop, logger_) {}

UnusedNodes::Deletion UnusedNodes::DeleteFor(const sched::FillPlan& plan, std::size_t after_refusal) {
  if (!context_.duties.deletes) return {};
  SteadyTime now = context_.loop.SteadyNow();
  if (now < next_deletion_) return {.again_at = next_deletion_};
  std::vector<NodeId> chosen = Choose(plan, after_refusal);
  if (!chosen.empty()) next_deletion_ = now + context_.intervals.make_room_holdoff;
  for (const NodeId& id : chosen) {
    tasks_.Spawn("delete an unused node", log::OfNode(id), Delete(id, NodeClaim(context_.ledger, id)));
  }
  bool are_all = plan.is_refused && chosen.size() < after_refusal;
  return {.nodes = std::move(chosen), .are_all = are_all};
}

// Nodes of other pools help only if the provider's quota is short. Nodes that requests wait for are deleted,
// too, if no others suffice: those requests have not taken them, and this one would wait for ever.
std::vector<NodeId> UnusedNodes::Choose(const sched::FillPlan& plan, std::size_t after_refusal) const {
  Resources shortage = plan.pool_shortage;
  for (const auto& [resource, amount] : plan.provider_shortage) {
    shortage[resource] = std::max(shortage[resource], amount);
  }
  for (const auto& [resource, amount] : plan.may_be_short) shortage[resource] = amount;
  std::vector<sched::UnusedNode> unused = UnusedIn(pool_.key());
  if (plan.pool_shortage.empty() || plan.is_refused) {
    for (const auto& [pool, use] : context_.caches.nodes.PoolsWithNodes(pool_.key().provider)) {
      if (pool == pool_.key().pool) continue;
      std::vector<sched::UnusedNode> others = UnusedIn({pool_.key().provider, pool});
      unused.insert(unused.end(), others.begin(), others.end());
    }
  }
  if (plan.is_refused) return sched::ChooseSome(std::move(unused), shortage, after_refusal);
  std::vector<NodeId> victims = sched::ChooseVictims(unused, shortage);
  // First what the pool lacks; what the provider lacks another time.
  if (victims.empty()) victims = sched::ChooseVictims(std::move(unused), plan.pool_shortage);
  return victims;
}

std::vector<sched::UnusedNode> UnusedNodes::UnusedIn(const PoolKey& pool) const {
  const auto& configured = pool_.provider_config().pools;
  auto config = configured.find(pool.pool);
  if (config == configured.end()) return {};
  std::set<LabelName> wanted = sched::LabelsToReuse(pool_.cluster().queues);
  auto is_wanted = [&](const LabelName& label) { return wanted.contains(label); };
  bool is_other = pool != pool_.key();
  std::map<NodeId, sched::UnusedNode> unused;
  for (const auto& [label, label_config] : config->second->labels) {
    for (const NodeId& id : context_.caches.nodes.FreeNodes(pool, label)) {
      const store::StoredNode* node = context_.caches.nodes.Find(id);
      if (node == nullptr) continue;
      // Requests of this pool cannot take nodes of another.
      if (!is_other && pool_.waiting().AnyTakes(*node)) continue;
      unused[id] = {.id = id,
                    .is_wanted = std::ranges::any_of(node->record.type, is_wanted),
                    .is_of_other_pool = is_other,
                    .ready_since = node->record.state_time,
                    .resources = node->record.resources.value_or(Resources{})};
    }
  }
  std::vector<sched::UnusedNode> nodes;
  for (auto& [id, node] : unused) nodes.push_back(std::move(node));
  return nodes;
}

Task<> UnusedNodes::Delete(NodeId id, NodeClaim /*claim*/) {
  auto node = co_await context_.store.nodes.TryLock(id);
  if (!node) co_return;
  WallTime now = context_.loop.Now();
  auto mark = [now](Node& record) {
    if (!record.is_free()) return store::Change::kSkip;
    record.SetState(NodeState::kDeleting, now);
    return store::Change::kWrite;
  };
  bool is_marked = co_await node->Update(mark);
  co_await node->Unlock();
  if (is_marked)
    logger_.About(log::OfNode(id)).Info("Deleting unused node to free capacity for a waiting request");
}

}  // namespace nodepool::launcher
