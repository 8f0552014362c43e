#pragma once

#include "drivers/kubernetes/config/kubernetes_config.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::kubernetes {

// A provider's section of the drivers `kubernetes`, `openshift` and `openshiftpods` (driver-kubernetes.md 2).
// The lists of a provider and of a pool are read by LoadKubernetesConfig.
struct KindSettings {
  Bindings<KubernetesLabel> label;
  Bindings<KubernetesPool> pool;
  Bindings<KubernetesConfig> provider;
};

const KindSettings& SettingsOf(Kind kind);

}  // namespace nodepool::drivers::kubernetes
