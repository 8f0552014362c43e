#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool delete ID...` and `nodepool hold ID... [--reason TEXT]`: under the lock of each node, sets its
// state, and its comment if one is given, and prints the nodes (operations.md 5.5, 13.3). A missing node is
// only reported. If a lock is held for 5 s by another client, logs an error, leaves the record unchanged and
// returns status 1; the other nodes are changed.
Task<int> ChangeNodes(Context& context, std::vector<std::string> ids, NodeState state,
                      std::optional<std::string> comment = {});

// `nodepool delete --now ID...`: deletes the machines from this process and removes the records. For a static
// host it removes only the record; a launcher registers its slot again. If a deletion fails the record stays
// `deleting`, and launchers continue.
Task<int> DeleteNow(Context& context, std::vector<std::string> ids);

}  // namespace nodepool::cli
