#pragma once

#include <string>

#include "base/log/log_setup.h"

namespace nodepool::config {

// Reads what -l names (configuration.md 14): a mapping in YAML or JSON, or INI, in the
// forms of Python's logging package. Handlers: StreamHandler, FileHandler,
// WatchedFileHandler, RotatingFileHandler, TimedRotatingFileHandler, SysLogHandler,
// NullHandler. Formatters: the standard one, nodepool.logconfig.MultiLineFormatter, and
// our own nodepool.logconfig.JsonFormatter. Anything else is an error, which begins with
// path and place (D-53).
Expected<log::Setup> ReadLogFile(const std::string& path);

}  // namespace nodepool::config
