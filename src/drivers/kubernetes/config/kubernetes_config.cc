#include "drivers/kubernetes/config/kubernetes_config.h"

#include <fmt/format.h>

#include "base/json_fields.h"
#include "base/log/logging.h"
#include "base/text.h"
#include "drivers/kubernetes/config/amounts.h"
#include "drivers/kubernetes/config/kubernetes_schema.h"
#include "drivers/kubernetes/config/names.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;
using config::Section;

namespace {

const log::Logger& ConfigLogger() {
  static const log::Logger logger("nodepool.driver.kubernetes");
  return logger;
}

void RefuseDates(const Section& section, std::string_view key, const config::Value& value) {
  using ValueKind = config::Value::Kind;
  if (value.kind() == ValueKind::kTimestamp) {
    throw section.Fail(key, fmt::format("{} is a date, which JSON does not have; write it in quotes",
                                        Excerpt(value.text())));
  }
  if (value.kind() == ValueKind::kList) {
    for (const config::Value& item : value.list()) RefuseDates(section, key, item);
  }
  if (value.kind() == ValueKind::kMap) {
    for (const auto& [name, member] : value.map()) RefuseDates(section, key, member);
  }
}

json::array ReadList(const Section& section, std::string_view key) {
  const config::Value* found = section.Raw(key);
  if (found == nullptr) return {};
  if (found->kind() != config::Value::Kind::kList)
    throw section.Fail(key, fmt::format("expected a list, found {}", found->KindName()));
  RefuseDates(section, key, *found);
  return found->ToJson().as_array();
}

std::map<std::string, std::string> ReadTexts(const Section& section, std::string_view key) {
  std::map<std::string, std::string> texts;
  for (auto& [name, text] : section.TextMap(key)) texts[name] = std::move(text);
  return texts;
}

// Overlays `amounts` with those of the setting.
void ReadAmounts(const Section& section, std::string_view key, Resources& amounts) {
  const config::Value* found = section.Raw(key);
  if (found == nullptr) return;
  for (const auto& [name, value] : section.TextMap(key)) {
    std::optional<double> amount = config::LenientFloat(*found->Find(name));
    if (!amount) throw section.Fail(key, fmt::format("expected a number of {}", Excerpt(name)));
    amounts[name] = *amount;
  }
}

PodAmounts ReadRequests(const Section& label, const Section& pool) {
  auto read = [&](const std::string& key) {
    std::optional<std::int64_t> own = label.OptionalInt(key);
    return own ? own : pool.OptionalInt("default-label-" + key);
  };
  return {read("cpu"), read("memory"), read("storage")};
}

PodAmounts ReadLimits(const Section& label, const Section& pool, const PodAmounts& requests) {
  auto read = [&](const std::string& key, std::optional<std::int64_t> request) {
    if (auto own = label.OptionalInt(key + "-limit")) return own;
    if (auto shared = pool.OptionalInt("default-label-" + key + "-limit")) return shared;
    return request;
  };
  return {read("cpu", requests.cpu), read("memory", requests.memory), read("storage", requests.storage)};
}

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

Resources NeedOfSpec(const json::object& spec) {
  Resources need = {{"instances", 1}, {"cores", 0}, {"ram", 0}};
  Add(need, RequestsOf(spec));
  return need;
}

bool ReadHasPod(Kind kind, const Section& section) {
  if (kind == Kind::kOpenshiftPods) return true;
  std::string type = section.Text("type");
  std::string_view empty = kind == Kind::kKubernetes ? "namespace" : "project";
  bool has_pod = kind == Kind::kKubernetes ? type != empty : type == "pod";
  if (type != "pod" && type != empty) {
    ConfigLogger().Warning("{}: type '{}' is neither pod nor {}; it counts as {}", section.place(),
                           Excerpt(type), empty, has_pod ? "pod" : empty);
  }
  return has_pod;
}

void ReadPod(const Section& section, KubernetesLabel& label) {
  label.image = section.OptionalText("image");
  label.image_pull = section.Text("image-pull");
  label.env = ReadList(section, "env");
  label.node_selector = ReadTexts(section, "node-selector");
  label.privileged = section.OptionalBool("privileged");
  label.scheduler_name = section.OptionalText("scheduler-name");
  label.volumes = ReadList(section, "volumes");
  label.volume_mounts = ReadList(section, "volume-mounts");
  label.gpu = section.OptionalFloat("gpu");
  label.gpu_resource = section.OptionalText("gpu-resource");
  if (const config::Value* spec = section.Raw("spec")) {
    RefuseDates(section, "spec", *spec);
    label.spec = ReadObject(section, "spec");
  }
}

std::string FaultOf(const KubernetesConfig& provider, const driver::PoolConfig& pool,
                    const KubernetesLabel& label) {
  if (label.has_pod && !label.image && label.spec.empty())
    return fmt::format("label {} has neither an image nor a spec", label.name);
  return FaultOfNames(provider, pool, label);
}

struct PoolSections {
  const Section& pool;
  Resources extra_resources;  // defaults for labels
};

std::shared_ptr<KubernetesLabel> ReadLabel(const Section& section, const PoolSections& in,
                                           const driver::PoolConfig& pool, const KubernetesConfig& provider,
                                           const config::Config& config) {
  auto label = std::make_shared<KubernetesLabel>();
  label->name = ReadLabelName(section, "name", config);
  label->host_key_checking = false;
  label->has_pod = ReadHasPod(provider.kind, section);
  label->connection.python_path = section.Text("python-path");
  label->connection.shell_type = section.OptionalText("shell-type");
  std::string empty = provider.kind == Kind::kKubernetes ? "namespace" : "project";
  label->connection.connection_type = label->has_pod ? "kubectl" : empty;
  ReadPod(section, *label);
  if (provider.kind != Kind::kKubernetes) label->image_pull_secrets = ReadList(section, "image-pull-secrets");
  label->labels = ReadTexts(section, "labels");
  label->dynamic_labels = ReadTexts(section, "dynamic-labels");
  label->annotations = ReadTexts(section, "annotations");
  if (label->spec.empty()) {
    label->requests = ReadRequests(section, in.pool);
    label->limits = ReadLimits(section, in.pool, label->requests);
    Resources extra = in.extra_resources;
    ReadAmounts(section, "extra-resources", extra);
    label->need_of_cluster = NeedOfSettings(*label);
    label->need = label->need_of_cluster;
    for (const auto& [name, amount] : extra) label->need[name] = amount;
  } else {
    label->need_of_cluster = NeedOfSpec(label->spec);
    label->need = label->need_of_cluster;
  }
  label->fault = FaultOf(provider, pool, *label);
  return label;
}

// max-servers of pools that have none: the first of the provider's that is set.
double DefaultServers(Kind kind, const Section& provider) {
  std::vector<const char*> keys = {"max-servers"};
  if (kind == Kind::kOpenshift) keys = {"max-projects", "max-servers"};
  if (kind == Kind::kOpenshiftPods) keys = {"max-pods", "max-projects", "max-servers"};
  for (const char* key : keys) {
    if (std::optional<double> servers = provider.OptionalFloat(key)) return *servers;
  }
  return driver::kUnlimited;
}

void ReadLimitsOf(const Section& section, Resources& limits) {
  if (auto cores = section.OptionalFloat("max-cores")) limits["cores"] = *cores;
  if (auto ram = section.OptionalFloat("max-ram")) limits["ram"] = *ram;
  ReadAmounts(section, "max-resources", limits);
}

Resources ReadExtraResources(const Section& pool) {
  Resources extra;
  constexpr std::string_view kMisspelt = "default-label-extra_resources";
  if (pool.Has(kMisspelt)) {
    ConfigLogger().Warning("{}: {} is read as default-label-extra-resources; correct its name", pool.place(),
                           kMisspelt);
    ReadAmounts(pool, kMisspelt, extra);
  }
  ReadAmounts(pool, "default-label-extra-resources", extra);
  return extra;
}

}  // namespace

const config::Schema& SchemaOf(Kind kind) {
  switch (kind) {
    case Kind::kOpenshift:
      return OpenshiftSchema();
    case Kind::kOpenshiftPods:
      return OpenshiftPodsSchema();
    case Kind::kKubernetes:
      break;
  }
  return KubernetesSchema();
}

std::shared_ptr<const KubernetesConfig> LoadKubernetesConfig(Kind kind,
                                                             const config::ProviderSection& section,
                                                             const config::Config& config) {
  auto result = std::make_shared<KubernetesConfig>();
  Section provider = OpenProvider(section, SchemaOf(kind));
  ReadProvider(section, provider, *result);
  result->kind = kind;
  if (kind == Kind::kKubernetes) {
    result->context = provider.OptionalText("context");
  } else {
    result->context = provider.Text("context");
  }
  result->cluster_quota = provider.Bool("cluster-quota");
  result->launch_timeout = provider.Seconds("launch-timeout");
  result->launch_retries = ReadCount(provider, "launch-retries");
  for (const Section& entry : provider.Sections("pools")) {
    auto pool = std::make_shared<driver::PoolConfig>();
    pool->max_servers = DefaultServers(kind, provider);
    ReadLimitsOf(provider, pool->limits);
    ReadPool(entry, provider, *pool);
    ReadLimitsOf(entry, pool->limits);
    PoolSections in{entry, ReadExtraResources(entry)};
    for (const Section& offer : entry.Sections("labels")) {
      pool->Offer(ReadLabel(offer, in, *pool, *result, config));
    }
    result->pools[pool->name] = pool;
  }
  return result;
}

}  // namespace nodepool::drivers::kubernetes
