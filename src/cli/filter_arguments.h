#pragma once

#include <map>
#include <string>
#include <vector>

#include "listing/row_filter.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace nodepool::cli {

// The options --state, --label and --provider of a command. Must outlive the parsing.
class FilterArguments {
 public:
  // Adds only the options for which there is a column.
  void AddTo(CLI::App& command, const std::vector<listing::Column>& columns);
  // The given filter. Throws CLI::ValidationError for an impossible value.
  listing::RowFilter Filter(const std::vector<listing::Column>& columns) const;

 private:
  std::map<listing::Kind, std::vector<std::string>> words_;
};

}  // namespace nodepool::cli
