#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/config_loader.h"

namespace nodepool::config {

struct Finding {
  enum class Level {
    kHint,     // useful information; nothing is wrong
    kWarning,  // wrong or doubtful, though the Python validator accepts it
    kError,
  };
  Level level = Level::kError;
  std::string message;
};

struct ValidationReport {
  std::vector<Finding> findings;

  std::size_t Count(Finding::Level level) const;
  // 0 when nothing is an error, else 1.
  int exit_status() const { return Count(Finding::Level::kError) == 0 ? 0 : 1; }
};

// The strict check of the main file only (configuration.md 13, steps 1 to 4). The verdict, and the place of
// the first error, are those of the Python validator; all errors of a step are listed, while the Python
// validator stops at the first. It also accepts keys and names that are given twice; here they are errors,
// since all but the last are dropped.
ValidationReport ValidateFile(const std::string& path, const LoadOptions& options);

// The same for a document that is already parsed, or for the error of its parsing.
ValidationReport ValidateDocument(const Document& document, const LoadOptions& options);
ValidationReport ValidateDocument(const Expected<Document>& document, const LoadOptions& options);

}  // namespace nodepool::config
