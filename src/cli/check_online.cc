#include "cli/check_online.h"

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

Task<Faults> CheckProvider(Context& context, ProviderName name) {
  std::unique_ptr<driver::Provider> provider = context.make_provider(name);
  SteadyTime deadline = context.loop.SteadyNow() + kProviderLimit;
  auto stop = [&provider] { return provider->Stop(); };
  Task<Faults> asking = WithDeadline(context.loop, deadline, "asking the provider", provider->FindFaults());
  Faults faults = co_await WithCleanup(std::move(asking), stop);
  co_return faults;
}

Task<> CheckProvider(Context& context, ProviderName name, bool& is_good) {
  Outcome<Faults> faults = co_await Attempt(CheckProvider(context, name));
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

Task<int> CheckOnline(Context& context, std::string servers, Task<> connect) {
  bool is_good = co_await CheckZooKeeper(context, std::move(servers), std::move(connect));
  std::map<ProviderName, bool> results;
  TaskGroup tasks(context.loop, context.logger);
  for (const auto& [name, config] : context.config->providers)
    tasks.Spawn("check provider " + name.str(), CheckProvider(context, name, results[name]));
  auto stop = [&tasks] { return tasks.Stop(); };
  co_await WithCleanup(tasks.Join(), stop);
  for (const auto& [name, is_provider_good] : results) is_good = is_good && is_provider_good;
  co_return is_good ? 0 : 1;
}

}  // namespace nodepool::cli
