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
};

// Runs the adapter contract's checks (driver/testing/contract.h) for a configured provider and prints the
// results. Returns the exit status. Error(kInvalid): there is no such provider or label.
int CheckDriver(const DriverCheck& check);

}  // namespace nodepool
