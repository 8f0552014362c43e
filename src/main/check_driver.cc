#include "main/check_driver.h"

#include <iostream>

#include "async/blocking_pool.h"
#include "base/random.h"
#include "daemon/connection.h"
#include "daemon/outside_drivers.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/loading/load_config.h"
#include "driver/testing/contract.h"
#include "main/builtin_drivers.h"
#include "zk/wire/wire_client.h"

namespace nodepool {
namespace {

namespace contract = driver::testing;

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

const char* Word(contract::CheckResult::Status status) {
  switch (status) {
    case contract::CheckResult::Status::kPassed:
      return "passed ";
    case contract::CheckResult::Status::kFailed:
      return "FAILED ";
    case contract::CheckResult::Status::kSkipped:
      return "skipped";
  }
  return "";
}

Task<std::vector<contract::CheckResult>> RunChecks(driver::cloud::Adapter& adapter, contract::Subject subject,
                                                   zk::Client& client) {
  std::vector<contract::CheckResult> results = co_await contract::RunContract(std::move(subject));
  co_await adapter.Stop();
  co_await client.Close();
  co_return results;
}

// Returns the exit status.
int Print(const std::vector<contract::CheckResult>& results) {
  int failed = 0;
  for (const contract::CheckResult& result : results) {
    std::cout << Word(result.status) << "  " << result.check << (result.detail.empty() ? "" : ": ")
              << result.detail << "\n";
    if (result.status == contract::CheckResult::Status::kFailed) ++failed;
  }
  std::cout << results.size() << " checks, " << failed << " failed\n";
  return failed == 0 ? 0 : 1;
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
  driver::ProviderEnvironment environment{loop, random, blocking_pool, store, nodes, images, [] {}};
  std::unique_ptr<driver::cloud::Adapter> adapter = driver->CreateAdapter(environment, config->second);
  std::shared_ptr<const driver::PoolConfig> pool;
  auto label = FindLabel(*config->second, check.label, pool);
  contract::Subject subject{loop, *adapter, config->first, pool, label};
  subject.most_cancellations = check.most_cancellations;
  std::vector<contract::CheckResult> results =
      RunToEnd(loop, RunChecks(*adapter, std::move(subject), client));
  return Print(results);
}

}  // namespace nodepool
