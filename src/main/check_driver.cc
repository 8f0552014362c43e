#include "main/check_driver.h"

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "async/attempt.h"
#include "async/blocking_pool.h"
#include "async/deadline.h"
#include "async/event.h"
#include "async/task_group.h"
#include "base/random.h"
#include "base/scope_exit.h"
#include "daemon/connection.h"
#include "daemon/outside_drivers.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/cloud/metadata.h"
#include "driver/load_config.h"
#include "driver/records_environment.h"
#include "driver/testing/contract.h"
#include "main/builtin_drivers.h"
#include "main/contract_printer.h"
#include "zk/wire_client.h"

namespace nodepool {
namespace {

namespace contract = driver::testing;

constexpr int kInterrupted = 130;                          // the exit status
constexpr Duration kStopLimit = std::chrono::seconds(75);  // more than Subject::removal_timeout

std::shared_ptr<const driver::LabelConfig> FindLabel(const driver::ProviderConfig& config,
                                                     const std::string& name,
                                                     std::shared_ptr<const driver::PoolConfig>& pool) {
  for (const auto& [pool_name, candidate] : config.pools) {
    pool = candidate;
    for (const auto& [label_name, label] : candidate->labels) {
      if (name.empty() || label_name.str() == name) return label;
    }
  }
  throw Error(Verdict::kInvalid, "provider " + config.name.str() + " offers no such label");
}

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
  std::cout << "a call of the driver does not end; look for machines with " << driver::cloud::kProviderKey
            << " = " << provider.str() << " in their metadata" << std::endl;
  std::_Exit(kInterrupted);
}

// Runs the contract to its end or until SIGINT or SIGTERM; then it removes what it made. A second
// signal ends the program at once. Returns whether there was a signal.
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

Task<> Close(driver::cloud::Adapter& adapter, zk::Client& client) {
  co_await adapter.Stop();
  co_await client.Close();
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
                check.config_path + " has no provider " + check.provider + " of a driver at hand");
  auto* driver = dynamic_cast<driver::cloud::CloudDriver*>(drivers.Find(config->second->driver));
  if (driver == nullptr)
    throw Error(Verdict::kInvalid,
                "driver " + config->second->driver + " is no cloud::CloudDriver: it has no adapter");

  Loop loop;
  SystemRandom random;
  BlockingPool blocking_pool;
  zk::WireClient client(loop, random,
                        daemon::ConnectionOptions(daemon::OrEmbedded((*loaded)->common.zookeeper)));
  store::Store store(loop, client, random);
  store::NodeCache nodes(loop, client);
  store::ImageCache images(loop, client);
  driver::RecordsEnvironment records{store, nodes, images};
  driver::ProviderEnvironment environment{loop, random, blocking_pool, records, [] {}};
  std::unique_ptr<driver::cloud::Adapter> adapter = driver->CreateAdapter(environment, config->second);
  std::shared_ptr<const driver::PoolConfig> pool;
  auto label = FindLabel(*config->second, check.label, pool);
  contract::Subject subject{loop, *adapter, config->first, pool, label};
  subject.most_cancellations = check.most_cancellations;
  ContractPrinter printer(std::cout);
  subject.observer = &printer;
  bool is_interrupted = RunToEnd(loop, RunUntilSignal(std::move(subject)));
  // Calls of the driver that block may go on for any time; they are not waited for.
  if (is_interrupted) std::_Exit(kInterrupted);
  bool has_passed = printer.Summarize();
  RunToEnd(loop, Close(*adapter, client));
  return has_passed ? 0 : 1;
}

}  // namespace nodepool
