#pragma once

#include <map>
#include <string>
#include <vector>

#include "listing/row_filter.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 has named it
class App;
}

namespace nodepool::cli {

// The options --state, --label and --provider of a command. Outlives the parsing.
class FilterArguments {
 public:
  // Only those for which there is a column.
  void AddTo(CLI::App& command, const std::vector<listing::Column>& columns);
  // What was given. Throws CLI::ValidationError for a value that cannot be meant.
  listing::RowFilter Filter(const std::vector<listing::Column>& columns) const;

 private:
  std::map<listing::Kind, std::vector<std::string>> words_;
};

}  // namespace nodepool::cli
