#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/invocation.h"
#include "listing/row_filter.h"

namespace nodepool::cli {

// Which nodes a command is for.
struct NodeSelection {
  std::vector<std::string> ids;  // as they were given, if any
  listing::RowFilter filter;     // else those with all of this
  bool is_confirmed = false;     // several may match without a question
};

// The nodes' ids; those that were given are not looked up. Nothing, after a message: several match
// and nobody confirms it. `verb` is what happens to them: "delete".
Task<std::optional<std::vector<std::string>>> SelectNodes(Context& context, NodeSelection selection,
                                                          std::string verb);

// Declares ids, --provider, --state, --label and --yes for a command, which then calls `change` with
// the ids; its status is that of the command.
void OnNodes(CLI::App& command, Invocation& invocation,
             std::function<Task<int>(Context&, std::vector<std::string> ids)> change);

}  // namespace nodepool::cli
