#include "main/check_driver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "async/blocking_pool.h"
#include "base/random.h"
#include "daemon/outside_drivers.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/loading/load_config.h"
#include "driver/testing/contract.h"
#include "driver/testing/stalling_proxy.h"
#include "main/builtin_drivers.h"
#include "main/contract_printer.h"
#include "main/run_until_signal.h"

namespace nodepool {
namespace {

namespace contract = driver::testing;

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
