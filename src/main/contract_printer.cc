#include "main/contract_printer.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

namespace nodepool {

namespace {

using driver::testing::CheckResult;

const char* Word(CheckResult::Status status) {
  switch (status) {
    case CheckResult::Status::kPassed:
      return "passed";
    case CheckResult::Status::kFailed:
      return "FAILED";
    case CheckResult::Status::kSkipped:
      return "skipped";
    case CheckResult::Status::kNotRun:
      return "not run";
  }
  return "";
}

}  // namespace

void ContractPrinter::CheckBegins(const std::string& check) {
  fmt::print(out_, "begins   {}\n", check);
  out_.flush();
}

void ContractPrinter::CheckEnded(const CheckResult& result) {
  ++checks_;
  if (result.status == CheckResult::Status::kFailed) ++failed_;
  if (result.status == CheckResult::Status::kNotRun) ++not_run_;
  fmt::print(out_, "{:<7}  {}{}{}", Word(result.status), result.check, result.detail.empty() ? "" : ": ",
             result.detail);
  if (result.status == CheckResult::Status::kNotRun) {
    out_ << ": the first creation failed";
  } else {
    fmt::print(out_, " ({:.1f} s)", std::chrono::duration<double>(result.duration).count());
  }
  out_ << std::endl;
}

void ContractPrinter::MachineLeft(const std::string& machine) {
  fmt::print(out_, "left     {}\n", machine);
  out_.flush();
}

bool ContractPrinter::Summarize() {
  fmt::print(out_, "{} checks, {} failed", checks_, failed_);
  if (not_run_ > 0) fmt::print(out_, ", {} not run", not_run_);
  out_ << std::endl;
  return failed_ == 0;
}

}  // namespace nodepool
