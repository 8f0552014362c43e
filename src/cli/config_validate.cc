#include "cli/config_validate.h"

#include "base/logging.h"
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

}  // namespace nodepool::cli
