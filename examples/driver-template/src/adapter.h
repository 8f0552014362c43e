#pragma once

#include <nodepool/async/blocking_pool.h>
#include <nodepool/driver/cloud/adapter.h>

#include <memory>
#include <vector>

#include "config.h"
#include "machines.h"

namespace lantern_driver {

namespace driver = nodepool::driver;
namespace cloud = nodepool::driver::cloud;
using nodepool::Task;

class Adapter : public cloud::CloudAdapter<Config, Label> {
 public:
  Adapter(nodepool::BlockingPool& pool, std::shared_ptr<const driver::ProviderConfig> config);

  Task<cloud::Instance> Create(cloud::MachineReport& report, cloud::CreateParameters parameters) override;
  Task<> Delete(cloud::MachineReport& report, boost::json::value external_id) override;
  Task<std::vector<cloud::Instance>> ListInstances() override;
  Task<std::vector<cloud::Resource>> ListResources() override;
  Task<> DeleteResource(cloud::Resource resource) override;
  Task<std::vector<boost::json::value>> MissingMachines(std::vector<boost::json::value> ids) override;
  Task<driver::QuotaInformation> QuotaLimits() override;
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override;

 private:
  Task<std::vector<Machine>> List();

  nodepool::BlockingPool& pool_;
  Machines machines_;
};

}  // namespace lantern_driver
