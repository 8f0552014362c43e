#include "drivers/kubernetes/config/kubernetes_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "base/json_fields.h"
#include "base/log/logging.h"
#include "base/text.h"
#include "driver/provider_section.h"
#include "drivers/kubernetes/names.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

namespace {

constexpr double kMebibyte = 0x1p20;
constexpr double kMegabyte = 1e6;

// A resource's name in records, and of how many of Kubernetes' units its own unit is.
std::pair<std::string, double> NameAndUnit(std::string_view key) {
  constexpr std::string_view kRequests = "requests.";
  if (key.starts_with(kRequests)) key.remove_prefix(kRequests.size());
  if (key == "cpu") return {resource::kCores, 1};
  if (key == "memory") return {resource::kRam, kMebibyte};
  if (key == "pods" || key == "count/pods") return {resource::kInstances, 1};
  return {std::string(key), key == "ephemeral-storage" ? kMegabyte : 1};
}

Resources RequestsOfContainer(const json::value& container) {
  const json::object* resources = ObjectIn(container, "resources");
  const json::object* requests = resources == nullptr ? nullptr : ObjectIn(*resources, "requests");
  return requests == nullptr ? Resources() : AmountsOf(*requests);
}

}  // namespace

Resources AmountsOf(const json::object& quantities) {
  Resources amounts;
  for (const auto& [key, value] : quantities) {
    std::optional<double> quantity = ParseQuantity(TextIn(quantities, key));
    if (!quantity) continue;
    auto [name, unit] = NameAndUnit(key);
    double amount = *quantity / unit;
    auto [known, is_new] = amounts.try_emplace(std::move(name), amount);
    if (!is_new) known->second = std::min(known->second, amount);
  }
  return amounts;
}

std::string NameInRecords(std::string_view key) { return NameAndUnit(key).first; }

Resources RequestsOf(const json::object& spec) {
  Resources sum;
  if (const json::array* containers = ArrayIn(spec, "containers")) {
    for (const json::value& container : *containers) Add(sum, RequestsOfContainer(container));
  }
  if (const json::array* first = ArrayIn(spec, "initContainers")) {
    for (const json::value& container : *first) {
      for (const auto& [name, amount] : RequestsOfContainer(container))
        sum[name] = std::max(sum[name], amount);
    }
  }
  if (const json::object* overhead = ObjectIn(spec, "overhead")) Add(sum, AmountsOf(*overhead));
  return sum;
}

std::optional<double> ParseQuantity(std::string_view text) {
  static const std::map<std::string_view, double> factors = {
      {"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},   {"k", 1e3},     {"M", 1e6},
      {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},   {"Ki", 0x1p10}, {"Mi", 0x1p20},
      {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
  double number = 0;
  // Without an exponent "1E" is a number and a suffix.
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  auto factor = factors.find(suffix);
  if (factor != factors.end()) {
    number *= factor->second;
  } else {
    auto [exponent_end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc() || exponent_end != text.data() + text.size()) return std::nullopt;
  }
  if (!std::isfinite(number) || number < 0) return std::nullopt;
  return number;
}

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

namespace {

const log::Logger& ConfigLogger() {
  static const log::Logger logger("nodepool.driver.kubernetes");
  return logger;
}

Schema Amounts() { return Schema::OpenMap(Schema::Int()); }

void ReadExtraResources(const Section& section, const std::string& key, KubernetesLabel& label) {
  driver::ReadAmounts(section, key, label.extra_resources);
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

// A part of what is sent to the cluster, as Kubernetes writes it.
template <class Member>
config::Binding<KubernetesLabel> AsSent(Setting setting, Member KubernetesLabel::*member) {
  if (setting.schema.kind() == Schema::Kind::kAny) setting.schema = config::MemberType<Member>::Usual();
  return {std::move(setting),
          [member](const Section& section, const std::string& key, KubernetesLabel& label) {
            if (!section.IsGiven(key)) return;
            RefuseDates(section, key, *section.Raw(key));
            label.*member = config::MemberType<Member>::Read(section, key);
          }};
}

// What a custom spec replaces.
Bindings<KubernetesLabel> PodSettings() {
  using Label = KubernetesLabel;
  Schema variable = Schema::Map({
      Setting("name", Schema::String(), "Name of the variable.").Required(),
      Setting("value", Schema::String(), "Its value.").Required(),
  });
  return {
      {Setting("image", "Image of the pod's container; it needs a shell, /bin/sh."), &Label::image},
      {Setting("image-pull", "When to fetch the image: IfNotPresent, Always or Never."), &Label::image_pull},
      {Setting("python-path", "Python interpreter in the pod."), &Label::connection,
       &driver::ConnectionSettings::python_path},
      {Setting("shell-type", "Shell in the pod, as Ansible names it."), &Label::connection,
       &driver::ConnectionSettings::shell_type},
      {Setting("cpu", "CPUs that the pod requests; default the pool's default-label-cpu."), &Label::requests,
       &PodAmounts::cpu},
      {Setting("memory", "Memory that the pod requests; default the pool's.").Unit("MiB"), &Label::requests,
       &PodAmounts::memory},
      {Setting("storage", "Ephemeral storage that the pod requests; default the pool's.").Unit("MB"),
       &Label::requests, &PodAmounts::storage},
      {Setting("cpu-limit", "CPUs that the pod may use; default the pool's, else cpu."), &Label::limits,
       &PodAmounts::cpu},
      {Setting("memory-limit", "Memory that the pod may use; default the pool's, else memory.").Unit("MiB"),
       &Label::limits, &PodAmounts::memory},
      {Setting("storage-limit", "Ephemeral storage that the pod may use; default the pool's, else storage.")
           .Unit("MB"),
       &Label::limits, &PodAmounts::storage},
      {Setting("gpu", Schema::Float(), "Share of a GPU, written with a dot: 1.0. Needs gpu-resource."),
       &Label::gpu},
      {Setting("gpu-resource", "The cluster's name for the GPU, e.g. nvidia.com/gpu."), &Label::gpu_resource},
      {Setting("extra-resources", Amounts(),
               "More resources of the node, for limits of pools and tenants; the cluster does not see them."),
       ReadExtraResources},
      AsSent(Setting("env", Schema::List(variable), "Environment variables of the container."), &Label::env),
      {Setting("node-selector", "Labels that the cluster's node must have."), &Label::node_selector},
      {Setting("privileged", "Whether the container is privileged; default: not sent."), &Label::privileged},
      {Setting("scheduler-name", "Another scheduler than the cluster's usual one."), &Label::scheduler_name},
      AsSent({"volumes", "Volumes of the pod, as Kubernetes writes them."}, &Label::volumes),
      AsSent({"volume-mounts", "Where the volumes are mounted, as Kubernetes writes it."},
             &Label::volume_mounts),
  };
}

Bindings<KubernetesLabel> LabelSettings(const Bindings<KubernetesLabel>& pod) {
  using Label = KubernetesLabel;
  Bindings<Label> settings = {
      {Setting("name", "One of the top-level labels; names the pod and its container.").Required(),
       &Label::name},
      {Setting("labels", "Labels of namespace and pod; values become text."), &Label::labels},
      {Setting("dynamic-labels",
               "Labels made from the request: {request.tenant_name}, {request.requestor_data[key]}."),
       &Label::dynamic_labels},
      {Setting("annotations", "Annotations of the pod; values become text."), &Label::annotations},
      AsSent({"spec",
              "The whole specification of the pod, as Kubernetes writes it, in place of all settings but "
              "name, type, labels, dynamic-labels and annotations."},
             &Label::spec),
  };
  settings = settings.With(pod);
  for (const std::string& key : pod.keys()) settings = settings.Exclusive({"spec", key});
  return settings;
}

// `empty` is the word for a namespace or project without a pod, which other words mean as well, or do not.
config::Binding<KubernetesLabel> Type(const char* empty, bool is_pod_otherwise) {
  Setting setting("type", Schema::String(),
                  fmt::format("pod, or {}: an empty one, in which the job makes its own pods.", empty));
  return {std::move(setting).Required(),
          [empty, is_pod_otherwise](const Section& section, const std::string& key, KubernetesLabel& label) {
            std::string type = section.Text(key);
            label.has_pod = is_pod_otherwise ? type != empty : type == "pod";
            if (type == "pod" || type == empty) return;
            ConfigLogger().Warning("{}: type '{}' is neither pod nor {}; it counts as {}", section.place(),
                                   Excerpt(type), empty, label.has_pod ? "pod" : empty);
          }};
}

Bindings<KubernetesLabel> OpenshiftPodSettings() {
  return PodSettings().With(
      {AsSent({"image-pull-secrets", "Secrets for fetching the image: {name: ...} each."},
              &KubernetesLabel::image_pull_secrets)});
}

void ReadMisspeltResources(const Section& section, const std::string& key, KubernetesLabel& label) {
  if (!section.Has(key)) return;
  ConfigLogger().Warning("{}: {} is read as default-label-extra-resources; correct its name", section.place(),
                         key);
  ReadExtraResources(section, key, label);
}

// Of a pool.
Bindings<KubernetesLabel> DefaultsForLabels() {
  using Label = KubernetesLabel;
  return {
      {Setting("default-label-cpu", "Default of the labels' cpu."), &Label::requests, &PodAmounts::cpu},
      {Setting("default-label-memory", "Default of the labels' memory.").Unit("MiB"), &Label::requests,
       &PodAmounts::memory},
      {Setting("default-label-storage", "Default of the labels' storage.").Unit("MB"), &Label::requests,
       &PodAmounts::storage},
      {Setting("default-label-cpu-limit", "Default of the labels' cpu-limit."), &Label::limits,
       &PodAmounts::cpu},
      {Setting("default-label-memory-limit", "Default of the labels' memory-limit.").Unit("MiB"),
       &Label::limits, &PodAmounts::memory},
      {Setting("default-label-storage-limit", "Default of the labels' storage-limit.").Unit("MB"),
       &Label::limits, &PodAmounts::storage},
      {Setting("default-label-extra_resources", Amounts(), "The same; use default-label-extra-resources.")
           .DaemonOnly(),
       ReadMisspeltResources},
      {Setting("default-label-extra-resources", Amounts(),
               "Defaults of the labels' extra-resources, key by key."),
       ReadExtraResources},
  };
}

Bindings<driver::PoolConfig> Limits(const char* of) {
  return {
      Limit({"max-cores", fmt::format("{} CPUs that the pods request together.", of)}, resource::kCores),
      Limit(Setting("max-ram", fmt::format("{} memory that the pods request together.", of)).Unit("MiB"),
            resource::kRam),
      {Setting("max-resources", Amounts(),
               fmt::format("{} limits of other resources, e.g. of extra-resources.", of)),
       [](const Section& section, const std::string& key, driver::PoolConfig& pool) {
         driver::ReadAmounts(section, key, pool.limits);
       }},
  };
}

// A default of the pools' max-servers; where several are set, the last one counts.
config::Binding<driver::PoolConfig> MaxServers(const char* key, const char* help) {
  return {Setting(key, Schema::Int(), help).Unit("nodes"), &driver::PoolConfig::max_servers};
}
config::Binding<driver::PoolConfig> HiddenMaxServers(const char* key, const char* help) {
  return {Setting(key, Schema::Int(), help).Unit("nodes").DaemonOnly(), &driver::PoolConfig::max_servers};
}

KindSettings Settings(const Bindings<KubernetesLabel>& label, const char* help_of_name, Setting context,
                      const Bindings<driver::PoolConfig>& servers) {
  Bindings<KubernetesPool> pool =
      Bindings<KubernetesPool>(PoolSettings(help_of_name))
          .With({Setting("labels", Schema::List(label.ToSchema()), "The labels offered here.").Required()})
          .With(Limits("The pool's"))
          .With(&KubernetesPool::label_defaults, DefaultsForLabels());
  Bindings<KubernetesConfig> provider = {
      Setting("pools", Schema::List(pool.ToSchema()), "Groups of nodes.").Required(),
      driver::cloud::LaunchRetries(),
      {Setting("launch-timeout", "Time for one attempt, until the pod runs.").DaemonOnly(),
       &KubernetesConfig::launch_timeout},
      {Setting(
           "cluster-quota",
           "Whether the cluster's own limits count beside the configured ones: the capacity of its nodes, "
           "in openshiftpods the ResourceQuotas of the pools' namespaces. Needs more rights, and reads all "
           "pods of the cluster.")
           .DaemonOnly(),
       &KubernetesConfig::cluster_quota},
      {std::move(context), &KubernetesConfig::context},
  };
  provider = provider.With(&KubernetesConfig::pool_defaults, Limits("Each pool's default:"))
                 .With(&KubernetesConfig::pool_defaults, servers);
  return {label, std::move(pool), std::move(provider)};
}

}  // namespace

const KindSettings& SettingsOf(Kind kind) {
  constexpr const char* kDefault = "Default of the pools' max-servers.";
  static const KindSettings kubernetes =
      Settings(LabelSettings(PodSettings()).With({Type("namespace", true)}),
               "Name of the pool; namespaces begin with it.",
               {"context", "Context of the kubeconfig; default: its current-context."},
               {MaxServers("max-servers", kDefault)});
  static const KindSettings openshift =
      Settings(LabelSettings(OpenshiftPodSettings()).With({Type("project", false)}),
               "Name of the pool; projects begin with it.",
               Setting("context", "Context of the kubeconfig.").Required(),
               {HiddenMaxServers("max-servers", kDefault), MaxServers("max-projects", kDefault)});
  static const KindSettings openshift_pods = Settings(
      LabelSettings(OpenshiftPodSettings()).RequireOneOf({"image", "spec"}),
      "Name of the pool, and of the project, which must exist, in which its pods are made.",
      Setting("context", "Context of the kubeconfig.").Required(),
      {HiddenMaxServers("max-servers", "The same; the others win."),
       HiddenMaxServers("max-projects", "The same; max-pods wins."), MaxServers("max-pods", kDefault)});
  switch (kind) {
    case Kind::kOpenshift:
      return openshift;
    case Kind::kOpenshiftPods:
      return openshift_pods;
    case Kind::kKubernetes:
      break;
  }
  return kubernetes;
}

const config::Schema& SchemaOf(Kind kind) {
  static const Schema kubernetes = SettingsOf(Kind::kKubernetes).provider.ToSchema();
  static const Schema openshift = SettingsOf(Kind::kOpenshift).provider.ToSchema();
  static const Schema openshift_pods = SettingsOf(Kind::kOpenshiftPods).provider.ToSchema();
  switch (kind) {
    case Kind::kOpenshift:
      return openshift;
    case Kind::kOpenshiftPods:
      return openshift_pods;
    case Kind::kKubernetes:
      break;
  }
  return kubernetes;
}

}  // namespace nodepool::drivers::kubernetes
