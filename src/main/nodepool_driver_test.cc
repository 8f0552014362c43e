#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>

#include "async/blocking_pool.h"
#include "base/random.h"
#include "cli/connection.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/load_config.h"
#include "driver/testing/contract.h"
#include "main/builtin_drivers.h"
#include "zk/wire_client.h"

// Runs the contract of adapters (driver/testing/contract.h) for a configured provider.

namespace nodepool {
namespace {

namespace contract = driver::testing;

struct Options {
  std::string config_path;
  std::string provider;
  std::string label;  // empty: the first of the first pool
  std::vector<std::string> drivers_dirs;
  int most_cancellations = 20;
};

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

int Run(const Options& options) {
  driver::Registry drivers;
  AddDrivers(options.drivers_dirs, drivers);
  auto loaded = driver::LoadConfig(options.config_path, std::nullopt, drivers, KnownDriverSchemas());
  if (!loaded) throw loaded.error();
  auto config = (*loaded)->providers.find(ProviderName(options.provider));
  if (config == (*loaded)->providers.end())
    throw Error(Verdict::kInvalid,
                options.config_path + " has no provider " + options.provider + " of a driver at hand");
  auto* driver = dynamic_cast<driver::cloud::CloudDriver*>(drivers.Find(config->second->driver));
  if (driver == nullptr)
    throw Error(Verdict::kInvalid,
                "driver " + config->second->driver + " is no cloud::CloudDriver: it has no adapter");

  Loop loop;
  SystemRandom random;
  BlockingPool blocking_pool;
  zk::WireClient client(loop, random, cli::ConnectionOptions(cli::OrEmbedded((*loaded)->common.zookeeper)));
  store::Store store(loop, client, random);
  store::NodeCache nodes(loop, client);
  store::ImageCache images(loop, client);
  driver::ProviderEnvironment environment{loop, random, blocking_pool, store, nodes, images, [] {}};
  std::unique_ptr<driver::cloud::Adapter> adapter = driver->CreateAdapter(environment, config->second);
  std::shared_ptr<const driver::PoolConfig> pool;
  auto label = FindLabel(*config->second, options.label, pool);
  contract::Subject subject{loop, *adapter, config->first, pool, label};
  subject.most_cancellations = options.most_cancellations;
  std::vector<contract::CheckResult> results =
      RunToEnd(loop, RunChecks(*adapter, std::move(subject), client));

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
}  // namespace nodepool

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("Checks that a driver's adapter does what Nodepool expects of it, against its real cloud.",
               "nodepool-driver-test");
  nodepool::Options options;
  app.add_option("-c", options.config_path, "configuration file")->required();
  app.add_option("--provider", options.provider, "one of its providers; no launcher may be using it")
      ->required();
  app.add_option("--label", options.label, "one of its labels; default the first");
  app.add_option("--drivers-dir", options.drivers_dirs, "directory of drivers; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--cancellations", options.most_cancellations,
                 "how often a creation and a deletion are told to stop half way; 0: at every await")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  nodepool::log::ToStderr();
  nodepool::log::SetLevel("nodepool.zk", nodepool::log::Level::kCritical);
  try {
    return nodepool::Run(options);
  } catch (const std::exception& error) {
    std::cerr << "nodepool-driver-test: " << error.what() << "\n";
    return 2;
  }
}
