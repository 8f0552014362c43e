#pragma once

#include <string>

#include "config/config_loader.h"

namespace nodepool::cli {

// `nodepool config-validate`: the strict check of the configuration file, reported
// through the log (configuration.md 13). Returns the exit status.
int ConfigValidate(const std::string& path, const config::DriverSchemas& drivers);

}  // namespace nodepool::cli
