#pragma once

#include <ostream>

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

}  // namespace nodepool
