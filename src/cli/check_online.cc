#include "cli/check_online.h"

#include <algorithm>
#include <map>
#include <vector>

#include "async/cleanup.h"
#include "async/deadline.h"
#include "async/task_group.h"
#include "base/text.h"

namespace nodepool::cli {
namespace {

using Faults = std::vector<std::string>;

constexpr Duration kZooKeeperLimit = std::chrono::seconds(10);
constexpr Duration kProviderLimit = std::chrono::minutes(1);

const log::Logger& ValidatorLogger() {
  static const log::Logger logger("nodepool.cmd.config_validator");
  return logger;
}

Task<bool> CheckZooKeeper(Context& context, std::string servers, Task<> connect) {
  SteadyTime deadline = context.loop.SteadyNow() + kZooKeeperLimit;
  Outcome<> connected =
      co_await Attempt(WithDeadline(context.loop, deadline, "connecting", std::move(connect)));
  if (connected) {
    ValidatorLogger().Info("ZooKeeper at {} is good", servers);
  } else {
    ValidatorLogger().Error("ZooKeeper at {} cannot be used: {}", servers, connected.error().message());
  }
  co_return connected.has_value();
}

Task<Faults> CheckProvider(Loop& loop, const MakeProvider& make, ProviderName name) {
  std::unique_ptr<driver::Provider> provider = make(name);
  SteadyTime deadline = loop.SteadyNow() + kProviderLimit;
  auto stop = [&provider] { return provider->Stop(); };
  Task<Faults> asking = WithDeadline(loop, deadline, "asking the provider", provider->FindFaults());
  Faults faults = co_await WithCleanup(std::move(asking), stop);
  co_return faults;
}

Task<> CheckProvider(Loop& loop, const MakeProvider& make, ProviderName name, bool& is_good) {
  Outcome<Faults> faults = co_await Attempt(CheckProvider(loop, make, name));
  is_good = faults && faults->empty();
  if (!faults) {
    ValidatorLogger().Error("Provider {} cannot be used: {}", name, faults.error().message());
  } else if (is_good) {
    ValidatorLogger().Info("Provider {} is good", name);
  } else {
    ValidatorLogger().Error("Provider {}: {}", name, Join(*faults, "; "));
  }
}

}  // namespace

Task<bool> CheckProviders(Loop& loop, std::shared_ptr<const driver::LoadedConfig> config, MakeProvider make) {
  std::map<ProviderName, bool> results;
  TaskGroup tasks(loop, ValidatorLogger());
  for (const auto& [name, provider] : config->providers)
    tasks.Spawn("check provider " + name.str(), CheckProvider(loop, make, name, results[name]));
  auto stop = [&tasks] { return tasks.Stop(); };
  co_await WithCleanup(tasks.Join(), stop);
  co_return std::ranges::all_of(results, [](const auto& result) { return result.second; });
}

Task<int> CheckOnline(Context& context, std::string servers, Task<> connect) {
  bool has_zookeeper = co_await CheckZooKeeper(context, std::move(servers), std::move(connect));
  bool is_good = co_await CheckProviders(context.loop, context.config, context.make_provider);
  co_return has_zookeeper&& is_good ? 0 : 1;
}

}  // namespace nodepool::cli
