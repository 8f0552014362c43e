#pragma once

#include "driver/cloud/cloud_driver.h"
#include "drivers/kubernetes/config/kubernetes_config.h"
#include "drivers/kubernetes/kubeconfig/kubeconfig.h"

namespace nodepool::drivers {

// The drivers `kubernetes`, `openshift` and `openshiftpods`: one library, which differs in where it makes the
// nodes' pods. Kubeconfig files are read by the provider, which follows their changes; with the configuration
// they are only tried, so that a warning says that a cluster cannot be found.
class KubernetesDriver : public driver::cloud::CloudDriver {
 public:
  explicit KubernetesDriver(kubernetes::Kind kind, kubernetes::Places places = {});

  std::string_view name() const override;
  const config::Schema& ProviderSchema() const override;
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override;
  std::unique_ptr<driver::cloud::Adapter> CreateAdapter(
      const driver::ProviderEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override;

 private:
  kubernetes::Kind kind_;
  kubernetes::Places places_;
};

}  // namespace nodepool::drivers
