#include "launcher/stats/stats_nodes.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "launcher/stats/stats_metrics.h"

namespace nodepool::launcher {
namespace {

constexpr double kMillion = 1e6;

// The order of launcher.md 27.3.
constexpr NodeState kOrder[] = {NodeState::kBuilding, NodeState::kTesting, NodeState::kReady,
                                NodeState::kInUse,    NodeState::kUsed,    NodeState::kHold,
                                NodeState::kDeleting, NodeState::kFailed,  NodeState::kInit,
                                NodeState::kAborted,  NodeState::kDeleted};

std::size_t IndexOf(NodeState state) { return static_cast<std::size_t>(state); }

template <class Key, class Counts>
void CountUnder(std::map<Key, Counts>& counts, const Key& key, NodeState state, int by) {
  Counts& of_key = counts[key];
  of_key[IndexOf(state)] += by;
  if (std::all_of(of_key.begin(), of_key.end(), [](int count) { return count == 0; })) counts.erase(key);
}

using Offers = std::map<PoolKey, std::vector<std::set<LabelName>>>;

// Whether one registration of the pool offers all the labels.
bool Offer(const std::vector<std::set<LabelName>>& offered, const std::vector<LabelName>& wanted) {
  return std::any_of(offered.begin(), offered.end(), [&](const std::set<LabelName>& labels) {
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](const LabelName& label) { return labels.contains(label); });
  });
}

}  // namespace

void NodeCounts::Count(const Node& node, int by) {
  if (!node.state) return;
  all_[IndexOf(*node.state)] += by;
  if (!node.provider.empty()) CountUnder(by_provider_, node.provider, *node.state, by);
  for (const LabelName& label : node.type) CountUnder(by_label_, label, *node.state, by);
  if (node.hourly_price && !node.provider.empty() && !node.type.empty()) {
    std::pair key(node.provider, node.type.front());
    std::int64_t& cost = hourly_costs_[key];
    cost += by * std::llround(*node.hourly_price * kMillion);
    if (cost == 0) hourly_costs_.erase(key);
  }
}

void NodeCounts::Change(const Node* before, const Node* after) {
  if (before != nullptr) Count(*before, -1);
  if (after != nullptr) Count(*after, 1);
}

void NodeCounts::Change(const NodeRequest* before, const NodeRequest* after) {
  if (before != nullptr) {
    auto it = requests_.find(before->node_types);
    if (it != requests_.end() && --it->second == 0) requests_.erase(it);
  }
  if (after != nullptr) ++requests_[after->node_types];
}

void NodeCounts::Report(metrics::Sink& to, const std::vector<const Component*>& pools) const {
  std::map<ProviderName, ByState> providers = by_provider_;
  std::map<LabelName, ByState> labels = by_label_;
  Offers offers;
  for (const Component* pool : pools) {
    providers.try_emplace(pool->provider_name);
    for (const LabelName& label : pool->supported_labels) labels.try_emplace(label);
    if (pool->name) {
      offers[{pool->provider_name, *pool->name}].emplace_back(pool->supported_labels.begin(),
                                                              pool->supported_labels.end());
    }
  }
  for (NodeState state : kOrder) to.Set(stats::kNodes, {std::string(ToString(state))}, all_[IndexOf(state)]);
  for (const auto& [provider, counts] : providers) {
    for (NodeState state : kOrder) {
      to.Set(stats::kProviderNodes, {provider.value, std::string(ToString(state))}, counts[IndexOf(state)]);
    }
  }
  for (const auto& [label, counts] : labels) {
    for (NodeState state : kOrder) {
      to.Set(stats::kLabelNodes, {label.value, std::string(ToString(state))}, counts[IndexOf(state)]);
    }
  }
  for (const auto& [key, millionths] : hourly_costs_) {
    to.Set(stats::kHourlyCost, {key.first.value, key.second.value},
           static_cast<double>(millionths) / kMillion);
  }
  for (const auto& [pool, offered] : offers) {
    int addressable = 0;
    for (const auto& [wanted, count] : requests_) {
      if (Offer(offered, wanted)) addressable += count;
    }
    to.Set(stats::kAddressableRequests, {pool.provider.value, pool.pool.value}, addressable);
  }
}

}  // namespace nodepool::launcher
