#pragma once

#include <nodepool/async/blocking_pool.h>
#include <nodepool/driver/statemachine/adapter.h>

#include <memory>

#include "bubble_config.h"
#include "container.h"

namespace bubble {

namespace driver = nodepool::driver;
namespace statemachine = nodepool::driver::statemachine;
using nodepool::Task;

// Containers of this host as nodes.
class Adapter : public statemachine::Adapter {
 public:
  Adapter(nodepool::BlockingPool& pool, std::shared_ptr<const Config> config);

  Task<statemachine::Instance> Create(statemachine::StateMachine& machine,
                                      statemachine::CreateParameters parameters) override;
  Task<> Delete(statemachine::StateMachine& machine, boost::json::value external_id) override;
  Task<std::vector<statemachine::Instance>> ListInstances() override;
  Task<std::vector<statemachine::Resource>> ListResources() override;
  Task<> DeleteResource(statemachine::Resource resource) override;
  Task<driver::QuotaInformation> QuotaLimits() override;
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override;
  Task<std::optional<std::string>> ConsoleLog(const driver::LabelConfig& label,
                                              boost::json::value external_id) override;

 private:
  statemachine::Instance Describe(const Container& container) const;
  template <class Work>
  auto Blocking(Work work);

  nodepool::BlockingPool& pool_;
  std::shared_ptr<const Config> config_;
  Containers containers_;
};

}  // namespace bubble
