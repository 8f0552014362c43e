#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/api/cloud.h"
#include "drivers/kubernetes/quota/capacity.h"

namespace nodepool::drivers::kubernetes {

// The adapter of the drivers kubernetes, openshift and openshiftpods to a cluster. Machines are namespaces,
// projects or pods; each task is in a file of its own below machine/.
class KubernetesAdapter : public driver::cloud::Adapter {
 public:
  KubernetesAdapter(driver::ProviderEnvironment environment, std::shared_ptr<const KubernetesConfig> config,
                    Means means);

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
