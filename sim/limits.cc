#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/node.h"
#include "sim/flaky_cloud.h"
#include "sim/inspector.h"

namespace nodepool::sim {

namespace {

using std::chrono::seconds;

// From the cloud's first answer about its quota to the last record of a launch decided before it: the zones
// may be read in between.
constexpr Duration kQuotaLag = seconds(60);

}  // namespace

// How long after the decision for a node its record may appear.
Duration Inspector::DecisionLag() const {
  return seconds(1) + 4 * scenario_.zk_latency + 4 * scenario_.trouble.api_latency;
}

// A pool that ignores the provider's quota may have made a node after a pool that respects it had decided.
bool Inspector::CameWithoutAsking(const SeenNode& node) const {
  auto pool = scenario_.pools.find({node.record.provider, node.record.pool});
  bool is_ignoring = pool != scenario_.pools.end() && pool->second->ignore_provider_quota;
  return is_ignoring && node.created > clock_.SteadyNow() - DecisionLag();
}

// With one launcher nothing is excused. With several, each decides by what it sees: a node that another
// launcher made after the last moment of which the writer is sure to know may exceed the limit
// (launcher.md 10.4, 23).
bool Inspector::Excused(const SeenNode& node) const {
  if (scenario_.launchers.size() == 1 || writer_ == nullptr || node.creator == writer_->name) return false;
  SteadyTime seen = writer_->blind_since.value_or(clock_.SteadyNow());
  Duration lag = DecisionLag();
  // A cache that failed to read starts again after a pause.
  if (scenario_.trouble.zk_fault_rate > 0) lag += seconds(20);
  return node.created > seen - lag;
}

Resources Inspector::Used(std::function<bool(const SeenNode&)> counts) const {
  Resources used;
  for (const auto& [id, node] : nodes_) {
    if (!counts(node)) continue;
    Resources need = node.record.type.empty() ? Resources{} : Scenario::NeedOf(node.record.type.front());
    nodepool::Add(used, node.record.resources.value_or(need));
  }
  return used;
}

Resources Inspector::UsedIn(const ProviderName& provider, const std::optional<PoolName>& pool) const {
  return Used([&](const SeenNode& node) {
    return node.record.provider == provider && (!pool || node.record.pool == *pool);
  });
}

void Inspector::CheckQuota(const NodeId& id, const Node& fresh) {
  auto pool = scenario_.pools.find({fresh.provider, fresh.pool});
  if (pool == scenario_.pools.end() || writer_ == nullptr) return;
  auto in_pool = [&](const SeenNode& node) {
    return node.record.provider == fresh.provider && node.record.pool == fresh.pool && !Excused(node);
  };
  auto in_provider = [&](const SeenNode& node) {
    return node.record.provider == fresh.provider && !Excused(node) && !CameWithoutAsking(node);
  };
  Resources used = Used(in_pool);
  const Resources limits = pool->second->Limit().resources();
  for (const auto& [resource, limit] : limits) {
    if (used[resource] > limit)
      Report(fmt::format("node {} exceeds the limit of its pool: {} of {} {}", id, used[resource], limit,
                         resource),
             {id.value, fresh.allocated_to.value});
  }
  auto known = writer_->api.knows_quota.find(fresh.provider);
  bool is_known = known != writer_->api.knows_quota.end() && clock_.SteadyNow() - known->second > kQuotaLag;
  if (pool->second->ignore_provider_quota || !is_known) return;
  const drivers::FakeLimits& cloud = scenario_.clouds.at(fresh.provider).limits;
  used = Used(in_provider);
  if (used["instances"] > cloud.instances || used["cores"] > cloud.cores || used["ram"] > cloud.ram)
    Report(fmt::format("node {} exceeds the quota of its cloud: {} instances, {} cores", id,
                       used["instances"], used["cores"]),
           {id.value, fresh.allocated_to.value});
}

void Inspector::CheckTenant(const NodeId& id, const Node& node) {
  if (!node.tenant_name || scenario_.launchers.size() > 1) return;
  auto limit = scenario_.common.tenant_limits.find(*node.tenant_name);
  if (limit == scenario_.common.tenant_limits.end()) return;
  // Tenant limits are checked when a request is accepted (launcher.md 20): the replacement of a node that the
  // cloud refused may appear before that node is gone.
  auto is_replaced = [&](const Node& other) {
    bool is_going = other.state == NodeState::kAborted || other.state == NodeState::kDeleting ||
                    other.state == NodeState::kDeleted;
    return is_going && other.allocated_to == node.allocated_to;
  };
  Resources used = Used([&](const SeenNode& other) {
    return other.record.tenant_name == node.tenant_name && !is_replaced(other.record);
  });
  for (const auto& [resource, amount] : limit->second) {
    if (used[resource] > amount)
      Report(fmt::format("node {} exceeds the limit of tenant {}: {} of {} {}", id, *node.tenant_name,
                         used[resource], amount, resource),
             {id.value, node.allocated_to.value});
  }
}

// A request that alone needs more than max-concurrency is served nevertheless.
void Inspector::CheckConcurrency(const NodeId& id, const Node& fresh) {
  auto provider = scenario_.providers.find(fresh.provider);
  if (provider == scenario_.providers.end() || provider->second->max_concurrency <= 0) return;
  int launching = 0;
  std::set<RequestId> requests;
  for (const auto& [other, node] : nodes_) {
    bool is_launching = node.record.state == NodeState::kBuilding && node.record.provider == fresh.provider &&
                        HoldsLock(node_locks_, other) && !node.is_let_go && node.creator == NameOf(writer_);
    if (!is_launching) continue;
    ++launching;
    requests.insert(node.record.allocated_to);
  }
  if (launching > provider->second->max_concurrency && requests.size() > 1)
    Report(fmt::format("node {} exceeds max-concurrency {} of {}: {} launches", id,
                       provider->second->max_concurrency, fresh.provider, launching),
           {id.value, fresh.allocated_to.value});
}

}  // namespace nodepool::sim
