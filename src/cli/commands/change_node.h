#pragma once

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool delete ID` and `nodepool hold ID [--reason TEXT]`: under the node's lock, sets
// its state, and its comment where one is given, and prints the node (operations.md 5.5,
// 13.3). A missing node is only reported; a lock
// that stays taken for 5 s is an error and leaves the record as it was.
Task<int> ChangeNode(Context& context, std::string id, NodeState state,
                     std::optional<std::string> comment = {});

// `nodepool delete --now ID`: deletes the machine from here and removes the record. Of
// a static host that is the record alone; a launcher registers its slot again. When the
// deletion fails the record stays `deleting`, and launchers go on.
Task<int> DeleteNow(Context& context, std::string id);

}  // namespace nodepool::cli
