#include "drivers/metastatic/metastatic_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/provider_section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

namespace cloud = driver::cloud;
namespace {

// Each slot is a node's record in ZooKeeper.
constexpr int kMaxSlots = 10'000;
constexpr Duration kMaxDuration = std::chrono::hours(24 * 365 * 10);

const Bindings<MetastaticLabel>& MetastaticLabelSettings() {
  static const Bindings<MetastaticLabel> settings = {
      {Setting("name", "One of the top-level labels.").Required(), &MetastaticLabel::name},
      {Setting("backing-label", "Label of the nodes that are cut into slots, which any provider may offer.")
           .Required(),
       &MetastaticLabel::backing_label},
      {Setting("max-parallel-jobs", Schema::Int().Between(1, kMaxSlots), "Slots of each backing node."),
       &MetastaticLabel::max_parallel_jobs},
      {Setting("grace-time", "An idle backing node is released after this."), &MetastaticLabel::grace_time},
      {Setting("min-retention-time", "A younger backing node is kept."),
       &MetastaticLabel::min_retention_time},
      {Setting("max-age", "An older backing node gives out no more slots."), &MetastaticLabel::max_age},
      {Setting("host-key-checking", "Whether to scan host keys; default the pool's.").Inherited(),
       &MetastaticLabel::host_key_checking},
  };
  return settings;
}

struct MetastaticPool : driver::PoolConfig {
  MetastaticPool() { host_key_checking = false; }
};

const Bindings<MetastaticPool>& MetastaticPoolSettings() {
  static const Bindings<MetastaticPool> settings =
      Bindings<MetastaticPool>(PoolSettings())
          .With({
              Setting("labels", Schema::List(MetastaticLabelSettings().ToSchema()),
                      "The labels offered here.")
                  .Required(),
              cloud::HostKeyChecking(),
          });
  return settings;
}

const Bindings<MetastaticConfig>& MetastaticSettings() {
  static const Bindings<MetastaticConfig> settings = {
      Setting("pools", Schema::List(MetastaticPoolSettings().ToSchema()), "Groups of nodes.").Required(),
      cloud::BootTimeout(),
      cloud::LaunchTimeout("Time for a launch, that of a backing node included."),
      cloud::LaunchRetries(),
      Setting("rate", Schema::Number(), "Without effect.").DaemonOnly(),
  };
  return settings;
}

// What is known only once there is a backing node (drivers.md 8.1).
MetastaticLabel LabelDefaults(const MetastaticPool& pool) {
  MetastaticLabel label;
  label.host_key_checking = pool.host_key_checking;
  label.cloud_image = "unused";
  label.connection.username = "unknown";
  label.connection.python_path = "unknown";
  label.connection.shell_type = "unknown";
  label.connection.connection_type = "unknown";
  return label;
}

std::shared_ptr<MetastaticLabel> ReadMetastaticLabel(const Section& section, const MetastaticPool& pool,
                                                     const config::Config& config) {
  auto label = ReadLabel(section, MetastaticLabelSettings(), config, LabelDefaults(pool));
  label->grace_time = std::min(label->grace_time, kMaxDuration);
  label->min_retention_time = std::min(label->min_retention_time, kMaxDuration);
  if (label->max_age) label->max_age = std::min(*label->max_age, kMaxDuration);
  if (label->max_age && *label->max_age < label->min_retention_time)
    throw section.Fail("max-age", "is less than min-retention-time");
  return label;
}

// Whether an entry of a pool, one label or a static host with several, offers the label. `key` names it.
bool Names(const config::Value& entry, std::string_view key, const LabelName& label) {
  const config::Value* found = entry.Find(key);
  if (found == nullptr) return false;
  if (found->kind() == config::Value::Kind::kList) {
    return std::ranges::any_of(found->list(), [&](const config::Value& item) {
      return item.is_scalar() && item.text() == label.value;
    });
  }
  if (!found->is_scalar()) return false;
  std::vector<std::string> words = Split(found->text(), ' ');
  return std::ranges::find(words, label.value) != words.end();
}

bool AnyNames(const config::Value& pool, std::string_view list, std::string_view key,
              const LabelName& label) {
  const config::Value* entries = pool.Find(list);
  return entries != nullptr && entries->kind() == config::Value::Kind::kList &&
         std::ranges::any_of(entries->list(),
                             [&](const config::Value& entry) { return Names(entry, key, label); });
}

// Whether a pool of any provider in the file offers the label.
bool IsOffered(const config::Config& config, const LabelName& label) {
  for (const config::ProviderSection& provider : config.providers) {
    const config::Value* pools = provider.source.Find("pools");
    if (pools == nullptr || pools->kind() != config::Value::Kind::kList) continue;
    for (const config::Value& pool : pools->list()) {
      if (AnyNames(pool, "labels", "name", label) || AnyNames(pool, "nodes", "labels", label)) return true;
    }
  }
  return false;
}

// Another launcher may offer it.
void WarnUnlessOffered(const Section& section, const MetastaticLabel& label, config::Config& config) {
  if (IsOffered(config, label.backing_label)) return;
  Warn(config, section, "backing-label",
       fmt::format(
           "no pool of this file offers label {}: requests for {} fail unless another launcher has one",
           label.backing_label, label.name));
}

// The settings that must be equal in all labels of one backing label.
auto SlotSettings(const MetastaticLabel& label) {
  return std::tuple(label.max_parallel_jobs, label.grace_time, label.min_retention_time, label.max_age);
}

}  // namespace

const MetastaticLabel* MetastaticConfig::FindLabel(const LabelName& name) const {
  return driver::cloud::FindLabel<MetastaticLabel>(
      *this, [&name](const MetastaticLabel& label) { return label.name == name; });
}

const MetastaticLabel* MetastaticConfig::FindByBackingLabel(const LabelName& name) const {
  return driver::cloud::FindLabel<MetastaticLabel>(
      *this, [&name](const MetastaticLabel& label) { return label.backing_label == name; });
}

const Schema& MetastaticSchema() {
  static const Schema schema = MetastaticSettings().ToSchema();
  return schema;
}

std::shared_ptr<const MetastaticConfig> LoadMetastaticConfig(const config::ProviderSection& section,
                                                             config::Config& config) {
  auto result = std::make_shared<MetastaticConfig>();
  Section provider = ReadProvider(section, MetastaticSettings(), *result);
  std::map<LabelName, std::shared_ptr<const MetastaticLabel>> by_backing_label;
  for (const Section& pool_section : provider.Sections("pools")) {
    std::shared_ptr<MetastaticPool> pool = ReadPool(pool_section, MetastaticPoolSettings(), *result);
    for (const Section& label_section : pool_section.Sections("labels")) {
      std::shared_ptr<MetastaticLabel> label = ReadMetastaticLabel(label_section, *pool, config);
      auto [other, is_first] = by_backing_label.emplace(label->backing_label, label);
      if (!is_first && SlotSettings(*label) != SlotSettings(*other->second)) {
        throw label_section.Fail("backing-label",
                                 "Multiple label definitions for the same backing label must be identical");
      }
      WarnUnlessOffered(label_section, *label, config);
      pool->Offer(std::move(label));
    }
    result->pools[pool->name] = std::move(pool);
  }
  return result;
}

}  // namespace nodepool::drivers
