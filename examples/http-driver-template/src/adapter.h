#pragma once

#include <nodepool/driver/cloud/adapter.h>
#include <nodepool/driver/cloud/api/list_cache.h>
#include <nodepool/net/http/http_client.h>

#include <memory>
#include <vector>

#include "api.h"
#include "config.h"

namespace lantern_driver {

namespace driver = nodepool::driver;
namespace cloud = nodepool::driver::cloud;
using nodepool::Task;

class Adapter : public cloud::CloudAdapter<Config, Label> {
 public:
  Adapter(const driver::cloud::AdapterEnvironment& environment,
          std::shared_ptr<const driver::ProviderConfig> config);

  Task<cloud::Instance> Create(cloud::MachineReport& report, cloud::CreateParameters parameters) override;
  Task<> Delete(cloud::MachineReport& report, boost::json::value external_id) override;
  Task<std::vector<cloud::Instance>> ListInstances() override;
  Task<std::vector<cloud::Resource>> ListResources() override;
  Task<> DeleteResource(cloud::Resource resource) override;
  Task<std::vector<boost::json::value>> MissingMachines(std::vector<boost::json::value> ids) override;
  Task<driver::QuotaInformation> QuotaLimits() override;
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override;
  Task<> Stop() override;

 private:
  Task<Machines> ReadList();
  Task<> Remove(std::string id);

  nodepool::log::Logger logger_{"nodepool.driver.lantern"};
  nodepool::net::CurlClient http_;
  Signer signer_;
  api::ApiClient client_;
  nodepool::TaskGroup tasks_;
  api::ListCache<Machines> machines_;  // one list for all that wait
};

}  // namespace lantern_driver
