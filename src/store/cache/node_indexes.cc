#include "store/cache/node_indexes.h"

namespace nodepool::store {
namespace {

LabelName FirstLabel(const Node& node) { return node.type.empty() ? LabelName() : node.type.front(); }

}  // namespace

std::optional<RequestId> RequestOf(const StoredNode& node) {
  const RequestId& request = node.record.allocated_to;
  return request.empty() ? std::nullopt : std::optional(request);
}

std::optional<std::string> TenantOf(const StoredNode& node) {
  return node.record.resources ? node.record.tenant_name : std::nullopt;
}

std::set<std::string> NamesOf(const StoredNode& node) {
  const Node& record = node.record;
  std::set<std::string> names;
  if (record.hostname) names = {*record.hostname, record.hostname->substr(0, record.hostname->find('.'))};
  if (record.external_id.is_string()) names.emplace(record.external_id.get_string());
  names.erase("");
  return names;
}

std::set<LabelName> FreeLabels(const StoredNode& node) {
  if (!node.record.is_free()) return {};
  return {node.record.type.begin(), node.record.type.end()};
}

void ProviderUse::Add(const StoredNode& node) {
  PoolUse& use = pools[node.record.pool];
  ++use.nodes;
  if (node.record.resources) {
    use.used.Add(*node.record.resources);
  } else {
    ++use.unknown[FirstLabel(node.record)];
  }
}

void ProviderUse::Remove(const StoredNode& node) {
  auto pool = pools.find(node.record.pool);
  PoolUse& use = pool->second;
  if (node.record.resources) {
    use.used.Subtract(*node.record.resources);
  } else if (auto label = use.unknown.find(FirstLabel(node.record)); --label->second == 0) {
    use.unknown.erase(label);
  }
  if (--use.nodes == 0) pools.erase(pool);
}

}  // namespace nodepool::store
