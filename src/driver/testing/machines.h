#pragma once

#include <memory>
#include <string>
#include <vector>

#include "async/attempt.h"
#include "async/deadline.h"
#include "driver/testing/contract.h"
#include "driver/testing/recorder.h"

namespace nodepool::driver::testing {

// A machine of a check, from before its creation to after its deletion.
struct Machine {
  NodeId node;
  Recorder recorder;
  cloud::Instance instance;
  bool is_removed = false;

  std::string name() const { return "np" + node.str(); }
};
using MachinePtr = std::shared_ptr<Machine>;

// The machines of the contract's checks: creates them through the adapter, and removes them. Each call of the
// adapter has a deadline; an error's message begins with the call that failed.
class Machines {
 public:
  explicit Machines(Subject subject) : subject_(std::move(subject)) {}

  const Subject& subject() const { return subject_; }
  bool has_created() const { return has_created_; }  // at least one creation succeeded

  bool any_has_id() const;  // of the current check's

  // A machine of the current check, before its creation.
  MachinePtr New();

  Task<> Create(MachinePtr machine);
  Task<> CreateUnbounded(MachinePtr machine);  // without a deadline
  Task<> Delete(MachinePtr machine);
  Task<> DeleteUnbounded(MachinePtr machine);
  // Removes the machine as the framework does: by the id if there is one, else by what is listed. Throws if
  // anything remains.
  Task<> Remove(MachinePtr machine);
  // The resources that the adapter lists for the machine's node.
  Task<std::vector<cloud::Resource>> Listed(MachinePtr machine);
  Task<std::vector<cloud::Instance>> ListInstances();

  // Removes the machines of the current check that remain, as far as possible.
  Task<> RemoveAll();
  // Begins the next check. Returns descriptions of the machines that remain.
  std::vector<std::string> TakeLeft();

  // A call of the adapter, with a deadline.
  template <class T>
  Task<T> Call(std::string what, Task<T> task) {
    SteadyTime deadline = subject_.loop.SteadyNow() + subject_.call_timeout;
    Outcome<T> outcome = co_await Attempt(WithDeadline(subject_.loop, deadline, what, std::move(task)));
    if (!outcome) throw Named(what, outcome.error());
    if constexpr (!std::is_void_v<T>) co_return std::move(*outcome);
  }

 private:
  static Error Named(const std::string& call, const Failure& failure);

  Subject subject_;
  int count_ = 0;
  bool has_created_ = false;
  std::vector<MachinePtr> made_;  // by the current check
};

}  // namespace nodepool::driver::testing
