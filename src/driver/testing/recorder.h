#pragma once

#include <string>
#include <vector>

#include "driver/cloud/adapter.h"

namespace nodepool::driver::testing {

// Records what the adapter reports to the framework about a machine.
class Recorder : public cloud::MachineReport {
 public:
  void SetState(std::string state) override { states.push_back(std::move(state)); }
  Task<> SetExternalId(boost::json::value id) override {
    external_id = std::move(id);
    co_return;
  }
  const log::Logger& logger() const override { return logger_; }
  int attempt() const override { return 1; }

  std::vector<std::string> states;
  boost::json::value external_id;

 private:
  log::Logger logger_{"nodepool.driver.testing"};
};

}  // namespace nodepool::driver::testing
