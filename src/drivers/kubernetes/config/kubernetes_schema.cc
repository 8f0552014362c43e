#include "drivers/kubernetes/config/kubernetes_schema.h"

#include <fmt/format.h>

#include "driver/cloud/section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

using config::Schema;
using config::Setting;

namespace {

constexpr const char* kMaxServers = "Default of the pools' max-servers.";

Schema Amounts() { return Schema::OpenMap(Schema::Int()); }
Schema AnyMapping() { return Schema::OpenMap(Schema::Any()); }
Schema AnyList() { return Schema::List(Schema::Any()); }

// What a custom spec replaces.
std::vector<Setting> PodSettings() {
  Schema variable = Schema::Map({
      Setting("name", Schema::String(), "Name of the variable.").Required(),
      Setting("value", Schema::String(), "Its value.").Required(),
  });
  return {
      Setting("image", Schema::String(), "Image of the pod's container; it needs a shell, /bin/sh."),
      Setting("image-pull", Schema::String(), "When to fetch the image: IfNotPresent, Always or Never.")
          .Default("IfNotPresent"),
      Setting("python-path", Schema::String(), "Python interpreter in the pod.").Default("auto"),
      Setting("shell-type", Schema::String(), "Shell in the pod, as Ansible names it."),
      Setting("cpu", Schema::Int(), "CPUs that the pod requests; default the pool's default-label-cpu."),
      Setting("memory", Schema::Int(), "Memory that the pod requests; default the pool's.").Unit("MiB"),
      Setting("storage", Schema::Int(), "Ephemeral storage that the pod requests; default the pool's.")
          .Unit("MB"),
      Setting("cpu-limit", Schema::Int(), "CPUs that the pod may use; default the pool's, else cpu."),
      Setting("memory-limit", Schema::Int(), "Memory that the pod may use; default the pool's, else memory.")
          .Unit("MiB"),
      Setting("storage-limit", Schema::Int(),
              "Ephemeral storage that the pod may use; default the pool's, else storage.")
          .Unit("MB"),
      Setting("gpu", Schema::Float(), "Share of a GPU, written with a dot: 1.0. Needs gpu-resource."),
      Setting("gpu-resource", Schema::String(), "The cluster's name for the GPU, e.g. nvidia.com/gpu."),
      Setting("extra-resources", Amounts(),
              "More resources of the node, for limits of pools and tenants; the cluster does not see them."),
      Setting("env", Schema::List(variable), "Environment variables of the container."),
      Setting("node-selector", AnyMapping(), "Labels that the cluster's node must have."),
      Setting("privileged", Schema::Bool(), "Whether the container is privileged; default: not sent."),
      Setting("scheduler-name", Schema::String(), "Another scheduler than the cluster's usual one."),
      Setting("volumes", AnyList(), "Volumes of the pod, as Kubernetes writes them."),
      Setting("volume-mounts", AnyList(), "Where the volumes are mounted, as Kubernetes writes it."),
  };
}

Schema LabelSchema(std::vector<Setting> pod) {
  Schema label = Schema::Map({
      Setting("name", Schema::String(), "One of the top-level labels; names the pod and its container.")
          .Required(),
      Setting("labels", AnyMapping(), "Labels of namespace and pod; values become text."),
      Setting("dynamic-labels", AnyMapping(),
              "Labels made from the request: {request.tenant_name}, {request.requestor_data[key]}."),
      Setting("annotations", AnyMapping(), "Annotations of the pod; values become text."),
      Setting("spec", AnyMapping(),
              "The whole specification of the pod, as Kubernetes writes it, in place of all settings but "
              "name, type, labels, dynamic-labels and annotations."),
  });
  std::vector<std::string> keys;
  for (const Setting& setting : pod) keys.push_back(setting.key);
  label = label.With(std::move(pod));
  for (const std::string& key : keys) label = label.Exclusive({"spec", key});
  return label;
}

Setting Type(const char* empty) {
  return Setting("type", Schema::String(),
                 fmt::format("pod, or {}: an empty one, in which the job makes its own pods.", empty))
      .Required();
}

std::vector<Setting> OpenshiftPodSettings() {
  std::vector<Setting> settings = PodSettings();
  settings.emplace_back("image-pull-secrets", AnyList(), "Secrets for fetching the image: {name: ...} each.");
  return settings;
}

std::vector<Setting> DefaultsForLabels() {
  auto setting = [](const char* key, const char* help) { return Setting(key, Schema::Int(), help); };
  return {
      setting("default-label-cpu", "Default of the labels' cpu."),
      setting("default-label-memory", "Default of the labels' memory.").Unit("MiB"),
      setting("default-label-storage", "Default of the labels' storage.").Unit("MB"),
      setting("default-label-cpu-limit", "Default of the labels' cpu-limit."),
      setting("default-label-memory-limit", "Default of the labels' memory-limit.").Unit("MiB"),
      setting("default-label-storage-limit", "Default of the labels' storage-limit.").Unit("MB"),
      Setting("default-label-extra-resources", Amounts(),
              "Defaults of the labels' extra-resources, key by key."),
      Setting("default-label-extra_resources", Amounts(), "The same; use default-label-extra-resources.")
          .DaemonOnly(),
  };
}

std::vector<Setting> Limits(const char* of) {
  return {
      Setting("max-cores", Schema::Int(), fmt::format("{} CPUs that the pods request together.", of)),
      Setting("max-ram", Schema::Int(), fmt::format("{} memory that the pods request together.", of))
          .Unit("MiB"),
      Setting("max-resources", Amounts(),
              fmt::format("{} limits of other resources, e.g. of extra-resources.", of)),
  };
}

Schema ProviderSchema(Schema label, const char* pool_name, std::vector<Setting> more) {
  Schema pool = Schema::Map({
      Setting("name", Schema::String(), pool_name).Required(),
      Setting("labels", Schema::List(std::move(label)), "The labels offered here.").Required(),
  });
  pool = pool.With(Limits("The pool's")).With(DefaultsForLabels()).With(PoolSettings());
  Schema provider = Schema::Map({
      Setting("pools", Schema::List(std::move(pool)), "Groups of nodes.").Required(),
      driver::cloud::LaunchRetries(),
      driver::cloud::LaunchTimeout(300, "Time for one attempt, until the pod runs.").DaemonOnly(),
      Setting(
          "cluster-quota", Schema::Bool(),
          "Whether the cluster's own limits count beside the configured ones: the capacity of its nodes, in "
          "openshiftpods the ResourceQuotas of the pools' namespaces. Needs more rights, and reads all pods "
          "of the cluster.")
          .Default(false)
          .DaemonOnly(),
  });
  return provider.With(Limits("Each pool's default:")).With(std::move(more));
}

Setting Context() { return Setting("context", Schema::String(), "Context of the kubeconfig."); }

}  // namespace

const Schema& KubernetesSchema() {
  static const Schema schema = ProviderSchema(
      LabelSchema(PodSettings()).With({Type("namespace")}), "Name of the pool; namespaces begin with it.",
      {
          Setting("context", Schema::String(), "Context of the kubeconfig; default: its current-context."),
          Setting("max-servers", Schema::Int(), kMaxServers).Unit("nodes"),
      });
  return schema;
}

const Schema& OpenshiftSchema() {
  static const Schema schema = ProviderSchema(
      LabelSchema(OpenshiftPodSettings()).With({Type("project")}),
      "Name of the pool; projects begin with it.",
      {
          Context().Required(),
          Setting("max-projects", Schema::Int(), "Default of the pools' max-servers.").Unit("nodes"),
          Setting("max-servers", Schema::Int(), kMaxServers).Unit("nodes").DaemonOnly(),
      });
  return schema;
}

const Schema& OpenshiftPodsSchema() {
  static const Schema schema = ProviderSchema(
      LabelSchema(OpenshiftPodSettings()).RequireOneOf({"image", "spec"}),
      "Name of the pool, and of the project, which must exist, in which its pods are made.",
      {
          Context().Required(),
          Setting("max-pods", Schema::Int(), "Default of the pools' max-servers.").Unit("nodes"),
          Setting("max-projects", Schema::Int(), "The same; max-pods wins.").Unit("nodes").DaemonOnly(),
          Setting("max-servers", Schema::Int(), "The same; the others win.").Unit("nodes").DaemonOnly(),
      });
  return schema;
}

}  // namespace nodepool::drivers
