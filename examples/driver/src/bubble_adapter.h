#pragma once

#include <nodepool/async/blocking_pool.h>
#include <nodepool/driver/cloud/adapter.h>

#include <memory>

#include "bubble_config.h"
#include "container.h"

namespace bubble {

namespace driver = nodepool::driver;
namespace cloud = nodepool::driver::cloud;
using nodepool::Task;

// Containers on this host as nodes.
class Adapter : public cloud::CloudAdapter<Config, Label> {
 public:
  Adapter(nodepool::BlockingPool& pool, std::shared_ptr<const driver::ProviderConfig> config);

  Task<cloud::Instance> Create(cloud::MachineReport& machine, cloud::CreateParameters parameters) override;
  Task<> Delete(cloud::MachineReport& machine, boost::json::value external_id) override;
  Task<std::vector<cloud::Instance>> ListInstances() override;
  Task<std::vector<cloud::Resource>> ListResources() override;
  Task<> DeleteResource(cloud::Resource resource) override;
  Task<driver::QuotaInformation> QuotaLimits() override;
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override;
  Task<std::optional<std::string>> ConsoleLog(const driver::LabelConfig& label,
                                              boost::json::value external_id) override;

 private:
  cloud::Instance Describe(const Container& container) const;
  template <class Work>
  auto Blocking(Work work);

  nodepool::BlockingPool& pool_;
  Containers containers_;
};

}  // namespace bubble
