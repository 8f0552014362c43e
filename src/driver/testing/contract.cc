#include "driver/testing/contract.h"

#include <fmt/format.h>

#include "async/cleanup.h"
#include "async/task_group.h"
#include "driver/testing/checks.h"

namespace nodepool::driver::testing {

namespace {

constexpr Duration kLongestBlock = std::chrono::milliseconds(500);
constexpr Duration kLookInterval = std::chrono::milliseconds(250);

using Status = CheckResult::Status;

class Contract {
 public:
  explicit Contract(Subject subject)
      : loop_(subject.loop),
        observer_(subject.observer ? *subject.observer : nobody_),
        removal_timeout_(subject.removal_timeout),
        search_timeout_(subject.search_timeout),
        machines_(std::move(subject)) {}

  Task<std::vector<CheckResult>> Run() {
    TaskGroup watch(loop_, log::Logger("nodepool.driver.testing"));
    watch.Spawn("watch the loop", WatchLoop());
    auto stop = [&watch] { return watch.Stop(); };
    co_await WithCleanup(RunChecks(), stop);
    ReportBlock();
    co_return std::move(results_);
  }

 private:
  Task<> RunChecks() {
    auto remove = [this](const Failure&) { return RemoveInTime(); };
    for (const Check& check : Checks()) {
      bool needs_machine = !results_.empty() && !machines_.has_created();
      if (needs_machine) {
        End({.check = check.name, .status = Status::kNotRun});
      } else {
        co_await OnFailure(RunCheck(check), remove);
      }
    }
  }

  Task<> RunCheck(const Check& check) {
    Begin(check.name);
    SteadyTime begun = loop_.SteadyNow();
    CheckResult result{.check = check.name};
    Outcome<std::string> done = co_await Attempt(check.run(machines_));
    result.detail = done ? *done : done.error().message();
    if (!done) {
      result.status = Status::kFailed;
    } else if (!result.detail.empty()) {
      result.status = Status::kSkipped;
    }
    result.duration = loop_.SteadyNow() - begun;
    End(std::move(result));
    if (!done) co_await RemoveAfterFailure();
    ReportLeft();
  }

  // Where nothing has an id, there is probably nothing, and the lists fail as the creation did.
  Task<> RemoveAfterFailure() {
    if (machines_.any_has_id()) co_return co_await machines_.RemoveAll();
    SteadyTime deadline = loop_.SteadyNow() + search_timeout_;
    co_await EndsBy(loop_, deadline, "searching for machines of the check", machines_.RemoveAll());
  }

  // Called when the run is cancelled during a check.
  Task<> RemoveInTime() {
    SteadyTime deadline = loop_.SteadyNow() + removal_timeout_;
    co_await EndsBy(loop_, deadline, "removing the machines of the check", machines_.RemoveAll());
    ReportLeft();
  }

  Task<> WatchLoop() {
    while (true) {
      SteadyTime due = loop_.SteadyNow() + kLookInterval;
      co_await loop_.SleepUntil(due);
      Duration block = loop_.SteadyNow() - due;
      if (block <= longest_block_) continue;
      longest_block_ = block;
      blocked_in_ = current_;
    }
  }

  void ReportBlock() {
    CheckResult result{.check = "nothing blocks the loop"};
    Begin(result.check);
    if (longest_block_ > kLongestBlock) {
      result.status = Status::kFailed;
      result.detail = fmt::format("the loop was blocked for {:.1f} s in the check \"{}\"",
                                  std::chrono::duration<double>(longest_block_).count(), blocked_in_);
    }
    End(std::move(result));
  }

  void ReportLeft() {
    for (const std::string& machine : machines_.TakeLeft()) observer_.MachineLeft(machine);
  }

  void Begin(std::string check) {
    current_ = std::move(check);
    observer_.CheckBegins(current_);
  }

  void End(CheckResult result) {
    observer_.CheckEnded(result);
    results_.push_back(std::move(result));
  }

  Loop& loop_;
  ContractObserver nobody_;
  ContractObserver& observer_;
  Duration removal_timeout_;
  Duration search_timeout_;
  Machines machines_;
  std::vector<CheckResult> results_;
  std::string current_;
  Duration longest_block_{0};
  std::string blocked_in_;
};

}  // namespace

Task<std::vector<CheckResult>> RunContract(Subject subject) {
  Contract contract(std::move(subject));
  std::vector<CheckResult> results = co_await contract.Run();
  co_return results;
}

}  // namespace nodepool::driver::testing
