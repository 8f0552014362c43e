#include "cli/commands/config_validate.h"

#include <CLI/CLI.hpp>

#include "base/log/logging.h"
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

}  // namespace nodepool::cli
