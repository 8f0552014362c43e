#include "main/check_driver.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "async/blocking_pool.h"
#include "async/deadline.h"
#include "async/event.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/ids.h"
#include "base/scope_exit.h"
#include "daemon/program.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/cloud/metadata.h"
#include "driver/loading/load_config.h"
#include "driver/testing/contract.h"
#include "main/builtin_drivers.h"

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

namespace {

template <class Map>
std::string Names(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name.str());
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::shared_ptr<const driver::LabelConfig> FindLabel(const driver::ProviderConfig& config,
                                                     const std::string& name,
                                                     std::shared_ptr<const driver::PoolConfig>& pool) {
  for (const auto& [pool_name, candidate] : config.pools) {
    pool = candidate;
    for (const auto& [label_name, label] : candidate->labels) {
      if (name.empty() || label_name.str() == name) return label;
    }
  }
  std::string offered;
  for (const auto& [pool_name, candidate] : config.pools) {
    offered += fmt::format("; pool {} has {}", pool_name, Names(candidate->labels));
  }
  throw Error(Verdict::kInvalid, fmt::format("provider {} offers no label {}{}", config.name, name, offered));
}

constexpr Duration kSilence =
    std::chrono::seconds(20);  // long enough to see that a creation ends when told to
constexpr const char* kProxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};

bool HasProxy() {
  return std::ranges::any_of(kProxies, [](const char* name) { return std::getenv(name) != nullptr; });
}

// Lets the driver's HTTP client reach its cloud through the proxy.
void UseProxy(const contract::StallingProxy& proxy) {
  for (const char* name : {"http_proxy", "https_proxy"}) ::setenv(name, proxy.url().c_str(), 1);
  for (const char* name : {"no_proxy", "NO_PROXY"}) ::unsetenv(name);
}

Task<> Close(driver::cloud::Adapter& adapter, contract::StallingProxy& proxy) {
  co_await proxy.Stop();
  co_await adapter.Stop();
}

}  // namespace

int CheckDriver(const DriverCheck& check) {
  driver::Registry drivers;
  AddBuiltinDrivers(drivers);
  daemon::AddOutsideDrivers(check.drivers_dirs, drivers, log::Logger("nodepool.driver.Drivers"));
  auto loaded = driver::LoadConfig(check.config_path, std::nullopt, drivers, KnownDriverSchemas());
  if (!loaded) throw loaded.error();
  auto config = (*loaded)->providers.find(ProviderName(check.provider));
  if (config == (*loaded)->providers.end())
    throw Error(Verdict::kInvalid,
                fmt::format("{} has no provider {} whose driver is known; it has {}. A driver from elsewhere "
                            "needs --drivers-dir or NODEPOOL_DRIVERS_PATH",
                            check.config_path, check.provider, Names((*loaded)->providers)));
  // The driver may come from elsewhere, and only those of clouds have adapters.
  auto* driver = dynamic_cast<driver::cloud::CloudDriver*>(drivers.Find(config->second->driver));
  if (driver == nullptr)
    throw Error(Verdict::kInvalid,
                "driver " + config->second->driver + " is no cloud::CloudDriver: it has no adapter");

  Loop loop;
  SystemRandom random;
  BlockingPool blocking_pool;
  bool has_proxy = HasProxy();
  contract::StallingProxy proxy(loop);
  if (!has_proxy) UseProxy(proxy);
  driver::cloud::Framework framework;
  driver::cloud::AdapterEnvironment environment{{loop, random, blocking_pool}, framework};
  std::unique_ptr<driver::cloud::Adapter> adapter = driver->CreateAdapter(environment, config->second);
  adapter->Start();
  std::shared_ptr<const driver::PoolConfig> pool;
  auto label = FindLabel(*config->second, check.label, pool);
  contract::Subject subject{loop, *adapter, config->first, pool, label};
  subject.most_cancellations = check.most_cancellations;
  subject.stall = [&proxy](bool is_stalled) { proxy.Stall(is_stalled); };
  subject.stall_timeout = kSilence;
  subject.why_no_stall = [&proxy, has_proxy]() -> std::string {
    if (has_proxy) return "the environment names a proxy, so the test's own cannot stop the cloud's answers";
    return proxy.connections() > 0 ? "" : "the driver does not reach its cloud by Nodepool's HTTP client";
  };
  ContractPrinter printer(std::cout);
  subject.observer = &printer;
  bool is_interrupted = RunToEnd(loop, RunUntilSignal(std::move(subject)));
  // Calls of the driver that block may go on for any time; they are not waited for.
  if (is_interrupted) std::_Exit(kInterrupted);
  bool has_passed = printer.Summarize();
  RunToEnd(loop, Close(*adapter, proxy));
  return has_passed ? 0 : 1;
}

}  // namespace nodepool
