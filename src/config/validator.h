#pragma once

#include <string>
#include <vector>

#include "config/config_loader.h"

namespace nodepool::config {

struct Finding {
  enum class Level { kNote, kError };
  Level level = Level::kError;
  std::string message;
};

struct ValidationReport {
  std::vector<Finding> findings;

  // 0 when nothing is an error, else 1.
  int exit_status() const;
};

// `nodepool config-validate` (configuration.md 13): the strict check of the main
// file alone. The verdict, and the place of the first error, are those of the Python
// validator; all errors of a step are listed, where that one stops at the first.
ValidationReport ValidateFile(const std::string& path, const DriverSchemas& drivers,
                              const Environment& environment = ProcessEnvironment());

// The same for a document that is already parsed.
ValidationReport ValidateDocument(const Value& document, const DriverSchemas& drivers);

}  // namespace nodepool::config
