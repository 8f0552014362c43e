#include "drivers/metastatic/metastatic_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "driver/cloud/section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

namespace cloud = driver::cloud;
using config::Schema;
using config::Section;
using config::Setting;

namespace {

// Each slot is a node's record in ZooKeeper.
constexpr int kMaxSlots = 10'000;
constexpr Duration kMaxDuration = std::chrono::hours(24 * 365 * 10);

Duration ReadTime(const Section& section, std::string_view key) {
  return std::min(section.Seconds(key), kMaxDuration);
}

Schema MakeSchema() {
  Schema label = Schema::Map({
      Setting("name", Schema::String(), "One of the top-level labels.").Required(),
      Setting("backing-label", Schema::String(), "Label of the nodes that are cut into slots.").Required(),
      Setting("max-parallel-jobs", Schema::Int(), "Slots of each backing node.").Default(1),
      Setting("grace-time", Schema::Int(), "An idle backing node is released after this.")
          .Default(60)
          .Unit("seconds"),
      Setting("min-retention-time", Schema::Int(), "A younger backing node is kept.")
          .Default(0)
          .Unit("seconds"),
      Setting("max-age", Schema::Int(), "An older backing node gives out no more slots.").Unit("seconds"),
      Setting("host-key-checking", Schema::Bool(), "Whether to scan host keys; default the pool's."),
  });
  Schema pool = Schema::Map({
      Setting("name", Schema::String(), "Name of the pool.").Required(),
      Setting("labels", Schema::List(label), "The labels offered here.").Required(),
      Setting("host-key-checking", Schema::Bool(), "Whether to scan host keys.").Default(false),
  });
  return Schema::Map({
      Setting("pools", Schema::List(pool.With(PoolSettings())), "Groups of nodes.").Required(),
      cloud::BootTimeout(120),
      cloud::LaunchTimeout(3600, "Time for a launch, that of a backing node included."),
      cloud::LaunchRetries(),
      Setting("rate", Schema::Number(), "Without effect.").DaemonOnly(),
  });
}

std::shared_ptr<MetastaticLabel> ReadLabel(const Section& section, const Section& pool,
                                           const config::Config& config) {
  auto label = std::make_shared<MetastaticLabel>();
  label->name = ReadLabelName(section, "name", config);
  label->backing_label = LabelName(section.Text("backing-label"));
  label->max_parallel_jobs = ReadCount(section, "max-parallel-jobs");
  if (label->max_parallel_jobs < 1 || label->max_parallel_jobs > kMaxSlots)
    throw section.Fail("max-parallel-jobs", "expected 1 to 10000");
  label->grace_time = ReadTime(section, "grace-time");
  label->min_retention_time = ReadTime(section, "min-retention-time");
  if (section.Has("max-age")) {
    label->max_age = ReadTime(section, "max-age");
    if (*label->max_age < label->min_retention_time)
      throw section.Fail("max-age", "is less than min-retention-time");
  }
  label->host_key_checking =
      section.OptionalBool("host-key-checking").value_or(pool.Bool("host-key-checking"));
  // Known only once there is a backing node (drivers.md 8.1).
  label->cloud_image = "unused";
  label->connection.username = "unknown";
  label->connection.python_path = "unknown";
  label->connection.shell_type = "unknown";
  label->connection.connection_type = "unknown";
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
void WarnUnlessOffered(const Section& section, const LabelName& backing_label, config::Config& config) {
  if (IsOffered(config, backing_label)) return;
  std::string message = fmt::format(
      "no pool of this file offers label {}: requests for {} fail unless another launcher has one",
      backing_label, section.Text("name"));
  config.warnings.push_back(section.Fail("backing-label", message).In(config.path).message());
}

// The settings that must be equal in all labels of one backing label.
auto SlotSettings(const MetastaticLabel& label) {
  return std::tuple(label.max_parallel_jobs, label.grace_time, label.min_retention_time, label.max_age);
}

}  // namespace

const MetastaticLabel* MetastaticConfig::FindLabel(const LabelName& name) const {
  return FindIf([&name](const MetastaticLabel& label) { return label.name == name; });
}

const MetastaticLabel* MetastaticConfig::FindByBackingLabel(const LabelName& name) const {
  return FindIf([&name](const MetastaticLabel& label) { return label.backing_label == name; });
}

const MetastaticLabel* MetastaticConfig::FindIf(std::function<bool(const MetastaticLabel&)> is_it) const {
  for (const auto& [pool_name, pool] : pools) {
    for (const auto& [label_name, config] : pool->labels) {
      const auto& label = dynamic_cast<const MetastaticLabel&>(*config);
      if (is_it(label)) return &label;
    }
  }
  return nullptr;
}

const Schema& MetastaticSchema() {
  static const Schema schema = MakeSchema();
  return schema;
}

std::shared_ptr<const MetastaticConfig> LoadMetastaticConfig(const config::ProviderSection& section,
                                                             config::Config& config) {
  auto result = std::make_shared<MetastaticConfig>();
  Section provider = OpenProvider(section, MetastaticSchema());
  ReadProvider(section, provider, *result);
  cloud::ReadLaunchSettings(provider, *result);
  std::map<LabelName, std::shared_ptr<const MetastaticLabel>> by_backing_label;
  for (const Section& pool_section : provider.Sections("pools")) {
    auto pool = std::make_shared<driver::PoolConfig>();
    ReadPool(pool_section, provider, *pool);
    for (const Section& label_section : pool_section.Sections("labels")) {
      std::shared_ptr<MetastaticLabel> label = ReadLabel(label_section, pool_section, config);
      auto [other, is_first] = by_backing_label.emplace(label->backing_label, label);
      if (!is_first && SlotSettings(*label) != SlotSettings(*other->second)) {
        throw label_section.Fail("backing-label",
                                 "Multiple label definitions for the same backing label must be identical");
      }
      WarnUnlessOffered(label_section, label->backing_label, config);
      pool->Offer(std::move(label));
    }
    result->pools[pool->name] = std::move(pool);
  }
  return result;
}

}  // namespace nodepool::drivers
