#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool delete ID...` and `nodepool hold ID... [--reason TEXT]`: under the lock of each node, sets
// its state, and its comment where one is given, and prints the nodes (operations.md 5.5,
// 13.3). A missing node is only reported. A lock that stays taken for 5 s is logged as an error,
// leaves the record as it was and makes the status 1; the other nodes are changed.
Task<int> ChangeNodes(Context& context, std::vector<std::string> ids, NodeState state,
                      std::optional<std::string> comment = {});

// `nodepool delete --now ID...`: deletes the machines from here and removes the records. Of
// a static host that is the record alone; a launcher registers its slot again. When a
// deletion fails the record stays `deleting`, and launchers go on.
Task<int> DeleteNow(Context& context, std::vector<std::string> ids);

}  // namespace nodepool::cli
