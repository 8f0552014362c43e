#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <vector>

#include "async/deadline.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/log/logging.h"
#include "base/text.h"
#include "cli/commands/commands.h"

namespace nodepool::cli {

namespace {

using config::Finding;

void Report(const Finding& finding, const log::Logger& logger) {
  switch (finding.level) {
    case Finding::Level::kHint:
      return logger.Info("{}", finding.message);
    case Finding::Level::kWarning:
      return logger.Warning("{}", finding.message);
    case Finding::Level::kError:
      return logger.Error("{}", finding.message);
  }
}

}  // namespace

int ConfigValidate(const Invocation& invocation, const driver::Registry& drivers,
                   config::DriverSchemas others, const AskOnline& ask_online) {
  log::Logger logger("nodepool.cmd.config_validator");
  const std::string& path = invocation.config_path;
  const Validation& wanted = *invocation.validation;
  logger.Info("Validating configuration in {}", path);
  driver::ConfigCheck check = driver::CheckConfig(
      path, drivers, driver::LoadOptionsFor(drivers, std::move(others), invocation.secure_path));
  if (wanted.is_strict) driver::MakeStrict(check.report);
  for (const Finding& finding : check.report.findings) Report(finding, logger);
  int status = check.report.exit_status();
  if (wanted.is_online && check.can_start) {
    status = std::max(status, ask_online(check.loaded));
  } else if (wanted.is_online) {
    logger.Error("Neither ZooKeeper nor the clouds were asked: mend the file first");
    status = 1;
  }
  logger.Info("{}", driver::Summary(check, path));
  return status;
}

void RegisterConfigValidate(CLI::App& app, Invocation& invocation) {
  auto values = std::make_shared<Validation>();
  CLI::App* command = app.add_subcommand("config-validate",
                                         "check the configuration file; needs no ZooKeeper without --online");
  command->add_flag("--strict", values->is_strict, "end with status 1 on warnings, too");
  command->add_flag(
      "--online", values->is_online,
      "also connect to ZooKeeper and log in to each cloud, and check that what the file names is there");
  command->callback([&invocation, values] { invocation.validation = *values; });
}

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

Task<Faults> CheckProvider(Loop& loop, const MakeTools& make, ProviderName name) {
  std::unique_ptr<driver::OperatorTools> tools = make(name);
  SteadyTime deadline = loop.SteadyNow() + kProviderLimit;
  auto stop = [&tools] { return tools->Stop(); };
  Task<Faults> asking = WithDeadline(loop, deadline, "asking the provider", tools->FindFaults());
  Faults faults = co_await WithCleanup(std::move(asking), stop);
  co_return faults;
}

Task<> CheckProvider(Loop& loop, const MakeTools& make, ProviderName name, bool& is_good) {
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

Task<bool> CheckProviders(Loop& loop, std::shared_ptr<const driver::LoadedConfig> config, MakeTools make) {
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
  bool is_good = co_await CheckProviders(context.loop, context.config, context.make_tools);
  co_return has_zookeeper&& is_good ? 0 : 1;
}

}  // namespace nodepool::cli
