#pragma once

#include <map>

#include "driver/cloud/adapter.h"
#include "drivers/example/example_config.h"

namespace nodepool::drivers {

// A minimal adapter: its cloud is a map, and every call ends at once. The driver guide explains it step by
// step.
class ExampleAdapter : public driver::cloud::CloudAdapter<ExampleConfig, ExampleLabel> {
 public:
  explicit ExampleAdapter(std::shared_ptr<const driver::ProviderConfig> config);

  Task<driver::cloud::Instance> Create(driver::cloud::MachineReport& machine,
                                       driver::cloud::CreateParameters parameters) override;
  Task<> Delete(driver::cloud::MachineReport& machine, boost::json::value external_id) override;
  Task<std::vector<driver::cloud::Instance>> ListInstances() override;
  Task<std::vector<driver::cloud::Resource>> ListResources() override;
  Task<> DeleteResource(driver::cloud::Resource resource) override;

 private:
  std::map<std::string, driver::cloud::Instance> cloud_;  // by id
};

}  // namespace nodepool::drivers
