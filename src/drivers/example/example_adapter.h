#pragma once

#include <map>

#include "driver/statemachine/adapter.h"
#include "drivers/example/example_config.h"

namespace nodepool::drivers {

// The smallest adapter there can be: its cloud is a map, and does at once what it is asked
// for. The driver author's guide walks through it.
class ExampleAdapter : public driver::statemachine::Adapter {
 public:
  explicit ExampleAdapter(std::shared_ptr<const ExampleConfig> config);

  Task<driver::statemachine::Instance> Create(driver::statemachine::StateMachine& machine,
                                              driver::statemachine::CreateParameters parameters) override;
  Task<> Delete(driver::statemachine::StateMachine& machine, boost::json::value external_id) override;
  Task<std::vector<driver::statemachine::Instance>> ListInstances() override;
  Task<std::vector<driver::statemachine::Resource>> ListResources() override;
  Task<> DeleteResource(driver::statemachine::Resource resource) override;

 private:
  std::shared_ptr<const ExampleConfig> config_;
  std::map<std::string, driver::statemachine::Instance> cloud_;  // by id
};

}  // namespace nodepool::drivers
