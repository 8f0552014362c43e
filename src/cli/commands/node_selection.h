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
  std::vector<std::string> ids;  // as given on the command line
  listing::RowFilter filter;     // without ids: nodes that match all of this
  bool is_confirmed = false;     // several nodes may match without a confirmation
};

// The nodes' ids; given ids are not looked up. Nothing, after a message, if several match without a
// confirmation. `verb` names the change: "delete".
Task<std::optional<std::vector<std::string>>> SelectNodes(Context& context, NodeSelection selection,
                                                          std::string verb);

// Declares ids, --provider, --state, --label and --yes for a command, which then calls `change` with
// the ids; its status is that of the command.
void OnNodes(CLI::App& command, Invocation& invocation,
             std::function<Task<int>(Context&, std::vector<std::string> ids)> change);

}  // namespace nodepool::cli
