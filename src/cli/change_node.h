#pragma once

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool delete ID` and `nodepool hold ID`: under the node's lock, sets its state
// and prints the node (operations.md 5.5). A missing node is only reported; a lock
// that stays taken for 5 s is an error and leaves the record as it was.
Task<int> ChangeNode(Context& context, std::string id, NodeState state);

}  // namespace nodepool::cli
