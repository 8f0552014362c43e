#include "drivers/kubernetes/config/kubernetes_config.h"

#include <fmt/format.h>

#include "drivers/kubernetes/config/amounts.h"
#include "drivers/kubernetes/config/kubernetes_settings.h"
#include "drivers/kubernetes/names.h"

namespace nodepool::drivers::kubernetes {

namespace {

// What the cluster sees of a node.
Resources NeedOfSettings(const KubernetesLabel& label) {
  Resources need = {{"instances", 1},
                    {"cores", static_cast<double>(label.requests.cpu.value_or(0))},
                    {"ram", static_cast<double>(label.requests.memory.value_or(0))}};
  if (label.requests.storage.value_or(0) != 0)
    need["ephemeral-storage"] = static_cast<double>(*label.requests.storage);
  if (label.gpu && label.gpu_resource) need[*label.gpu_resource] = *label.gpu;
  return need;
}

Resources NeedOfSpec(const boost::json::object& spec) {
  Resources need = {{"instances", 1}, {"cores", 0}, {"ram", 0}};
  Add(need, RequestsOf(spec));
  return need;
}

// Amounts without a limit are limited to what is requested.
void LimitToRequests(KubernetesLabel& label) {
  if (!label.limits.cpu) label.limits.cpu = label.requests.cpu;
  if (!label.limits.memory) label.limits.memory = label.requests.memory;
  if (!label.limits.storage) label.limits.storage = label.requests.storage;
}

void SetNeed(KubernetesLabel& label) {
  if (!label.spec.empty()) {
    label.requests = {};
    label.limits = {};
    label.extra_resources.clear();
    label.need_of_cluster = NeedOfSpec(label.spec);
  } else {
    LimitToRequests(label);
    label.need_of_cluster = NeedOfSettings(label);
  }
  label.need = label.need_of_cluster;
  for (const auto& [name, amount] : label.extra_resources) label.need[name] = amount;
}

std::string FaultOf(const KubernetesConfig& provider, const KubernetesPool& pool,
                    const KubernetesLabel& label) {
  if (label.has_pod && !label.image && label.spec.empty())
    return fmt::format("label {} has neither an image nor a spec", label.name);
  return FaultOfNames(provider, pool, label);
}

std::shared_ptr<KubernetesLabel> ReadKubernetesLabel(const Section& section, const KubernetesPool& pool,
                                                     const KubernetesConfig& provider,
                                                     const config::Config& config) {
  auto label = ReadLabel(section, SettingsOf(provider.kind).label, config, pool.label_defaults);
  const char* empty = provider.kind == Kind::kKubernetes ? "namespace" : "project";
  label->connection.connection_type = label->has_pod ? "kubectl" : empty;
  label->host_key_checking = false;
  SetNeed(*label);
  label->fault = FaultOf(provider, pool, *label);
  return label;
}

}  // namespace

std::shared_ptr<const KubernetesConfig> LoadKubernetesConfig(Kind kind,
                                                             const config::ProviderSection& section,
                                                             const config::Config& config) {
  auto result = std::make_shared<KubernetesConfig>();
  result->kind = kind;
  const KindSettings& settings = SettingsOf(kind);
  Section provider = ReadProvider(section, settings.provider, *result);
  for (const Section& entry : provider.Sections("pools")) {
    std::shared_ptr<KubernetesPool> pool = ReadPool(entry, settings.pool, *result, result->pool_defaults);
    for (const Section& offer : entry.Sections("labels")) {
      pool->Offer(ReadKubernetesLabel(offer, *pool, *result, config));
    }
    result->pools[pool->name] = std::move(pool);
  }
  return result;
}

}  // namespace nodepool::drivers::kubernetes
