#include "cli/commands/config_validate.h"

#include <CLI/CLI.hpp>

#include "base/log/logging.h"
#include "cli/commands/commands.h"
#include "config/validator.h"

namespace nodepool::cli {

int ConfigValidate(const std::string& path, const config::DriverSchemas& drivers) {
  log::Logger logger("nodepool.cmd.config_validator");
  logger.Info("Validating configuration in {}", path);
  config::ValidationReport report = config::ValidateFile(path, drivers);
  for (const config::Finding& finding : report.findings) {
    if (finding.level == config::Finding::Level::kError) {
      logger.Error("{}", finding.message);
    } else {
      logger.Warning("{}", finding.message);
    }
  }
  return report.exit_status();
}

void RegisterConfigValidate(CLI::App& app, Invocation& invocation) {
  app.add_subcommand("config-validate", "check the configuration file; needs no ZooKeeper")
      ->callback([&invocation] { invocation.is_validation = true; });
}

}  // namespace nodepool::cli
