#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_driver.h"
#include "drivers/kubernetes/api/cloud.h"
#include "drivers/kubernetes/config/kubernetes_config.h"
#include "drivers/kubernetes/kubeconfig/kubeconfig.h"
#include "drivers/kubernetes/quota/capacity.h"

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
      const driver::cloud::AdapterEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override;

 private:
  kubernetes::Kind kind_;
  kubernetes::Places places_;
};

}  // namespace nodepool::drivers

namespace nodepool::drivers::kubernetes {

// The adapter of the drivers kubernetes, openshift and openshiftpods to a cluster. Machines are namespaces,
// projects or pods; each task is in a file of its own below machine/.
class KubernetesAdapter : public driver::cloud::CloudAdapter<KubernetesConfig, KubernetesLabel> {
 public:
  KubernetesAdapter(driver::cloud::AdapterEnvironment environment,
                    const std::shared_ptr<const driver::ProviderConfig>& config, Means means);

  void Start() override;
  Task<driver::cloud::Instance> Create(driver::cloud::MachineReport& machine,
                                       driver::cloud::CreateParameters parameters) override;
  Task<> Delete(driver::cloud::MachineReport& machine, boost::json::value external_id) override;
  Task<std::vector<driver::cloud::Instance>> ListInstances() override;
  Task<std::vector<driver::cloud::Resource>> ListResources() override;
  Task<> DeleteResource(driver::cloud::Resource resource) override;
  Task<std::vector<boost::json::value>> MissingMachines(std::vector<boost::json::value> ids) override;
  Task<driver::cloud::AccessState> StateOfAccess(driver::cloud::NodeAccess access) override;
  Task<driver::cloud::NodeAccess> RenewAccess(boost::json::value external_id,
                                              driver::cloud::NodeAccess access) override;
  Task<driver::QuotaInformation> QuotaLimits() override;
  std::optional<driver::QuotaInformation> UsedByOthers() override;
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override;
  Task<> Stop() override;

 private:
  // The pool whose namespace has the pod of an external id, where the record does not say.
  std::string PoolOf(const driver::cloud::MachineReport& machine, const std::string& external_id) const;

  // In the last list.
  bool IsListed(const boost::json::value& id) const;
  bool AreListed(const std::vector<boost::json::value>& ids) const;

  std::unique_ptr<Capacity> capacity_;  // null: only configured limits count
  Cloud cloud_;                         // its watches fill capacity_, and end with it
  // What the last ListResources found usable, for MissingMachines right after it.
  std::set<std::string> listed_;
  SteadyTime listed_at_ = SteadyTime::min();
};

}  // namespace nodepool::drivers::kubernetes
