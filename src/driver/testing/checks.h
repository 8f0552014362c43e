#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "async/deadline.h"
#include "async/event.h"
#include "async/task.h"
#include "driver/cloud/adapter.h"
#include "driver/testing/contract.h"

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

// Cancels a task after a number of its turns, i.e. at a certain await.
struct Interruption {
  static constexpr int kNever = -1;
  int turns_left = kNever;  // 0: at once
  int turns = 0;            // how many turns there were
  bool has_happened = false;
  boost::asio::cancellation_signal signal;
  Event ended{"the end of a task"};

  void Interrupt() {
    has_happened = true;
    signal.emit(boost::asio::cancellation_type::terminal);
  }
  void TurnEnded() {
    ++turns;
    if (turns_left > 0 && --turns_left == 0) Interrupt();
  }
};

// An executor that counts the turns of the task that runs on it; otherwise as `Inner`.
template <class Inner>
class CountingExecutor {
 public:
  CountingExecutor(Inner inner, std::shared_ptr<Interruption> interruption) noexcept
      : inner_(std::move(inner)), interruption_(std::move(interruption)) {}

  template <class Function>
  void execute(Function&& function) const {
    auto turn = [function = std::forward<Function>(function), interruption = interruption_]() mutable {
      std::move(function)();
      interruption->TurnEnded();
    };
    inner_.execute(std::move(turn));
  }

  template <class Property>
    requires boost::asio::can_query<const Inner&, Property>::value
  decltype(auto) query(const Property& property) const
      noexcept(boost::asio::is_nothrow_query<const Inner&, Property>::value) {
    return boost::asio::query(inner_, property);
  }

  template <class Property>
    requires boost::asio::can_require<const Inner&, Property>::value
  auto require(const Property& property) const
      noexcept(boost::asio::is_nothrow_require<const Inner&, Property>::value) {
    using Required = std::decay_t<typename boost::asio::require_result<const Inner&, Property>::type>;
    return CountingExecutor<Required>(boost::asio::require(inner_, property), interruption_);
  }

  friend bool operator==(const CountingExecutor& a, const CountingExecutor& b) noexcept {
    return a.inner_ == b.inner_;
  }

 private:
  Inner inner_;
  std::shared_ptr<Interruption> interruption_;
};

// Starts `task`, which is cancelled after `turns` of its turns; `ended` is set at its end.
inline std::shared_ptr<Interruption> StartInterrupted(Loop& loop, Task<> task, int turns) {
  struct OnEnd {
    using cancellation_slot_type = boost::asio::cancellation_slot;
    std::shared_ptr<Interruption> interruption;
    cancellation_slot_type get_cancellation_slot() const noexcept { return interruption->signal.slot(); }
    void operator()(std::exception_ptr) { interruption->ended.Set(); }
  };
  auto interruption = std::make_shared<Interruption>();
  interruption->turns_left = turns;
  boost::asio::any_io_executor executor = CountingExecutor(loop.context().get_executor(), interruption);
  boost::asio::co_spawn(executor, std::move(task), OnEnd{interruption});
  if (turns == 0) interruption->Interrupt();
  return interruption;
}

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

struct Check {
  const char* name;
  // Throws if the check fails; returns the reason if the check could not be made, else an empty text.
  Task<std::string> (*run)(Machines& machines);
};

// The checks of the contract, in order; the first creates a machine.
std::span<const Check> Checks();

}  // namespace nodepool::driver::testing
