#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "config/config.h"
#include "config/schema/schema.h"
#include "driver/provider_config.h"
#include "drivers/provider_section.h"
#include "model/node.h"

namespace nodepool::drivers::kubernetes {

// Quantities as Kubernetes writes them, {"cpu": "500m", "memory": "2Gi"}, as amounts of a node's record:
// `cores`, `ram` in MiB, `ephemeral-storage` in MB, `instances` for pods, others by their name
// (driver-kubernetes.md 14.1). A quota's `requests.cpu` is its `cpu`; the smaller one counts. What is no
// quantity is left out.
Resources AmountsOf(const boost::json::object& quantities);

// The name in records of a resource that Kubernetes calls `key`: "cores" of "cpu" and "requests.cpu".
std::string NameInRecords(std::string_view key);

// What the scheduler counts for a pod with this spec: the requests of its containers together, or those of an
// init container where they are more, and the overhead. Without the pod itself: `instances` is absent.
Resources RequestsOf(const boost::json::object& pod_spec);

// The value of a quantity as Kubernetes writes it: "500m" is 0.5, "2Gi" is 2147483648 (driver-kubernetes.md
// 14.2). nullopt: it is none, or negative.
std::optional<double> ParseQuantity(std::string_view text);

enum class Kind {
  kKubernetes,     // a namespace for each node
  kOpenshift,      // a project for each node
  kOpenshiftPods,  // pods in a namespace that exists, named like the pool
};

// Amounts of a pod, with the pool's defaults. None or 0: not sent to the cluster.
struct PodAmounts {
  std::optional<std::int64_t> cpu;      // cores
  std::optional<std::int64_t> memory;   // MiB
  std::optional<std::int64_t> storage;  // MB
};

struct KubernetesLabel : driver::LabelConfig {
  bool has_pod = true;  // false: an empty namespace or project
  std::optional<std::string> image;
  std::string image_pull = "IfNotPresent";
  boost::json::array image_pull_secrets;
  PodAmounts requests;
  PodAmounts limits;
  std::optional<double> gpu;
  std::optional<std::string> gpu_resource;
  boost::json::array env;
  std::map<std::string, std::string> node_selector;
  std::optional<bool> privileged;
  std::optional<std::string> scheduler_name;
  boost::json::array volumes;
  boost::json::array volume_mounts;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> dynamic_labels;  // templates
  std::map<std::string, std::string> annotations;
  boost::json::object spec;   // empty: the pod is made from the settings above
  Resources extra_resources;  // that the cluster does not see
  Resources need;             // driver-kubernetes.md 14.1
  Resources need_of_cluster;  // the same without extra-resources, which the cluster does not see
  // Why the cluster would refuse every node of the label; empty: it would not.
  std::string fault;
};

struct KubernetesPool : driver::PoolConfig {
  KubernetesLabel label_defaults;  // amounts and extra resources
};

// Its pools are KubernetesPool, their labels KubernetesLabel.
struct KubernetesConfig : driver::ProviderConfig {
  KubernetesConfig() { launch_timeout = std::chrono::seconds(300); }

  Kind kind = Kind::kKubernetes;
  std::optional<std::string> context;  // of the kubeconfig
  bool cluster_quota = false;          // driver-kubernetes.md 14.3
  KubernetesPool pool_defaults;        // limits
};

const config::Schema& SchemaOf(Kind kind);

// Throws Error(kInvalid) with line and column. Labels that the cluster would refuse are loaded, with a fault.
std::shared_ptr<const KubernetesConfig> LoadKubernetesConfig(Kind kind,
                                                             const config::ProviderSection& section,
                                                             const config::Config& config);

// A provider's section of the drivers `kubernetes`, `openshift` and `openshiftpods` (driver-kubernetes.md 2).
// The lists of a provider and of a pool are read by LoadKubernetesConfig.
struct KindSettings {
  Bindings<KubernetesLabel> label;
  Bindings<KubernetesPool> pool;
  Bindings<KubernetesConfig> provider;
};

const KindSettings& SettingsOf(Kind kind);

}  // namespace nodepool::drivers::kubernetes
