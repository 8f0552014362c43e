#include "main/run_until_signal.h"

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "async/attempt.h"
#include "async/deadline.h"
#include "async/event.h"
#include "async/task_group.h"
#include "base/scope_exit.h"
#include "driver/cloud/metadata.h"

namespace nodepool {
namespace {

namespace contract = driver::testing;

constexpr Duration kStopLimit = std::chrono::seconds(75);  // more than Subject::removal_timeout

Task<> AwaitSignal(Loop& loop, Event& ended, bool& is_interrupted) {
  boost::asio::signal_set signals(loop.context(), SIGINT, SIGTERM);
  co_await signals.async_wait(boost::asio::use_awaitable);
  is_interrupted = true;
  ended.Set();
}

Task<> RunChecks(contract::Subject subject, Event& ended, std::optional<Failure>& failure) {
  ScopeExit end([&ended] { ended.Set(); });
  Outcome<std::vector<contract::CheckResult>> results =
      co_await Attempt(contract::RunContract(std::move(subject)));
  if (!results) failure = results.error();
}

// The current check removes its machines. A call of the driver that does not end is not waited for.
Task<> StopInTime(TaskGroup& group, ProviderName provider) {
  std::cout << "stopped: removing the machines of the current check" << std::endl;
  SteadyTime deadline = group.loop().SteadyNow() + kStopLimit;
  bool has_stopped = co_await EndsBy(group.loop(), deadline, "the checks to stop", group.Stop());
  if (has_stopped) co_return;
  std::cout << "a call of the driver does not end; search for machines with " << driver::cloud::kProviderKey
            << " = " << provider.str() << " in their metadata" << std::endl;
  std::_Exit(kInterrupted);
}

}  // namespace

Task<bool> RunUntilSignal(contract::Subject subject) {
  Loop& loop = subject.loop;
  const ProviderName provider = subject.provider;
  Event ended{"the checks"};
  bool is_interrupted = false;
  std::optional<Failure> failure;
  TaskGroup group(loop, log::Logger("nodepool.driver.testing"));
  group.Spawn("signals", AwaitSignal(loop, ended, is_interrupted));
  group.Spawn("checks", RunChecks(std::move(subject), ended, failure));
  co_await ended.Wait();
  if (is_interrupted) co_await StopInTime(group, provider);
  co_await group.Stop();
  if (failure) failure->Rethrow();
  co_return is_interrupted;
}

}  // namespace nodepool
