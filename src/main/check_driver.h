#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "driver/testing/contract.h"

namespace nodepool {

// Prints each check of the contract when it begins and when it has ended; flushed line by line.
class ContractPrinter : public driver::testing::ContractObserver {
 public:
  explicit ContractPrinter(std::ostream& out) : out_(out) {}

  void CheckBegins(const std::string& check) override;
  void CheckEnded(const driver::testing::CheckResult& result) override;
  void MachineLeft(const std::string& machine) override;

  // The last line. Returns whether every check that was made has passed.
  bool Summarize();

 private:
  std::ostream& out_;
  int checks_ = 0;
  int failed_ = 0;
  int not_run_ = 0;
};

inline constexpr int kInterrupted = 130;  // the exit status after a signal

// Runs the contract to its end or until SIGINT or SIGTERM; then the machines of the current check are
// removed. A second signal ends the program at once, and so does, with kInterrupted, a call of the
// driver that does not end. Returns whether there was a signal.
Task<bool> RunUntilSignal(driver::testing::Subject subject);

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
