#include "launcher/ledger.h"

#include <utility>

#include "base/text.h"

namespace nodepool::launcher {

namespace {

template <class Map, class Key>
void TakeBack(Map& map, const Key& key, const Resources& need) {
  ResourceSum& sum = map[key];
  sum.Subtract(need);
  if (sum.total().empty()) map.erase(key);
}

}  // namespace

NodeClaim::NodeClaim(Ledger& ledger, NodeId node) : ledger_(&ledger), node_(std::move(node)) {
  ledger.claimed_.insert(node_);
  ledger.nodes_.SetAside(node_);
  ledger.claim_listeners_.Notify(node_);
}

NodeClaim::~NodeClaim() {
  if (ledger_ == nullptr) return;
  ledger_->claimed_.erase(node_);
  ledger_->nodes_.PutBack(node_);
  ledger_->claim_listeners_.Notify(node_);
}

Reservation::Reservation(Ledger& ledger, const PoolKey& pool, const Resources& need)
    : ledger_(&ledger), id_(ledger.Add(pool, need)), launching_in_(pool.provider) {
  ++ledger.launches_[pool.provider];
}

Reservation::~Reservation() {
  if (ledger_ == nullptr) return;
  FreeResources();
  EndLaunch();
}

void Reservation::SetNode(const NodeId& node) {
  auto entry = ledger_->entries_.find(id_);
  if (entry == ledger_->entries_.end()) return;
  if (ledger_->nodes_.Find(node) != nullptr) return FreeResources();
  entry->second.node = node;
  ledger_->by_node_[node] = id_;
}

void Reservation::EndLaunch() {
  if (auto provider = std::exchange(launching_in_, std::nullopt)) ledger_->EndLaunch(*provider);
}

void Reservation::FreeResources() { ledger_->Release(id_); }

bool Reservation::is_pending() const { return ledger_->entries_.contains(id_); }

Ledger::Ledger(store::NodeCache& nodes)
    : nodes_(nodes),
      subscription_(
          nodes.OnChange([this](const NodeId& id, const store::StoredNode*, const store::StoredNode*) {
            if (auto it = by_node_.find(id); it != by_node_.end()) Release(it->second);
          })) {}

std::uint64_t Ledger::Add(const PoolKey& pool, const Resources& need) {
  by_pool_[pool].Add(need);
  by_provider_[pool.provider].Add(need);
  entries_.emplace(++last_id_, Entry{pool, need, {}});
  change_listeners_.Notify(pool.provider);
  return last_id_;
}

void Ledger::Release(std::uint64_t id) {
  auto it = entries_.find(id);
  if (it == entries_.end()) return;
  const Entry& entry = it->second;
  TakeBack(by_pool_, entry.pool, entry.need);
  TakeBack(by_provider_, entry.pool.provider, entry.need);
  if (entry.node) by_node_.erase(*entry.node);
  ProviderName provider = entry.pool.provider;
  entries_.erase(it);
  change_listeners_.Notify(provider);
}

void Ledger::EndLaunch(const ProviderName& provider) {
  --launches_[provider];
  change_listeners_.Notify(provider);
}

void Ledger::CloudRefused(const ProviderName& provider, SteadyTime until) {
  full_until_[provider] = until;
  change_listeners_.Notify(provider);
}

const Resources& Ledger::PendingIn(const PoolKey& pool) const { return FindOrEmpty(by_pool_, pool).total(); }
const Resources& Ledger::PendingIn(const ProviderName& provider) const {
  return FindOrEmpty(by_provider_, provider).total();
}

int Ledger::LaunchesInProgress(const ProviderName& provider) const {
  auto it = launches_.find(provider);
  return it == launches_.end() ? 0 : it->second;
}

SteadyTime Ledger::CloudFullUntil(const ProviderName& provider) const {
  auto it = full_until_.find(provider);
  return it == full_until_.end() ? SteadyTime() : it->second;
}

SteadyTime Ledger::NextCloudFree(SteadyTime now) const {
  SteadyTime next = SteadyTime::max();
  for (const auto& [provider, until] : full_until_) {
    if (until > now) next = std::min(next, until);
  }
  return next;
}

void Ledger::Await(const ProviderName& provider, const sched::ServiceOrder& order, Awaited awaited) {
  if (!awaited.empty()) {
    awaited_[provider][order] = std::move(awaited);
  } else if (auto known = awaited_.find(provider); known != awaited_.end()) {
    known->second.erase(order);
  }
  change_listeners_.Notify(provider);
}

Ledger::Awaited Ledger::AwaitedIn(const ProviderName& provider, const sched::ServiceOrder* before) const {
  Awaited sum;
  for (const auto& [order, awaited] : FindOrEmpty(awaited_, provider)) {
    if (before != nullptr && !(order < *before)) break;
    sum.turns += awaited.turns;
    sum.resources.insert(awaited.resources.begin(), awaited.resources.end());
    sum.labels.insert(awaited.labels.begin(), awaited.labels.end());
  }
  return sum;
}

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

// Nodes that an earlier run of the same request left do not count.
bool Promises::IsPart(const Promise& promise, const Node& node) const {
  if (node.tenant_name != promise.tenant) return false;
  bool is_coming = node.state == NodeState::kInit || node.state == NodeState::kBuilding;
  return node.state == NodeState::kReady || (is_coming && node.launcher == promise.launcher.value);
}

}  // namespace nodepool::launcher
