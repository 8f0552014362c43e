#pragma once

#include <string>
#include <vector>

namespace nodepool {

struct DriverCheck {
  std::string config_path;
  std::string provider;
  std::string label;  // empty: the first of the first pool
  std::vector<std::string> drivers_dirs;
  int most_cancellations = 20;
  bool is_debug = false;  // log at DEBUG level
};

// Runs the contract of adapters (driver/testing/contract.h) for a configured provider and prints
// each check as it begins and ends. Returns the exit status: 0, 1 when a check failed. SIGINT and
// SIGTERM stop the checks: what the current one made is removed, or listed where that fails within a
// minute, and the program exits with 130. Error(kInvalid): there is no such provider or label.
int CheckDriver(const DriverCheck& check);

}  // namespace nodepool
