#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/show_listing.h"
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

// Declares a command that shows what `make` returns after parsing, with all listing options that apply to it;
// its columns must not depend on the arguments. Returns the command, so that the caller can add options.
CLI::App* AddListing(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& help,
                     std::function<ListingCommand(Output)> make);

// The same with --detail, whose help is `detail_help`. In detail a listing has the columns that it has
// otherwise, and more, which --output may name without --detail, too.
CLI::App* AddDetailedListing(CLI::App& app, Invocation& invocation, const std::string& name,
                             const std::string& help, const std::string& detail_help,
                             std::function<ListingCommand(Output, bool is_detailed)> make);

}  // namespace nodepool::cli
