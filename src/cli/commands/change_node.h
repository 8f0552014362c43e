#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "operate/nodes.h"

namespace nodepool::cli {

// `nodepool delete ID...`, `hold ID... [--reason TEXT] [--for TIME]` and `unhold ID...`: change each node
// under its lock, and print those that were changed (operations.md 5.5, 13.3). If a node does not exist, its
// lock is held for 5 s by another client, or its state does not allow the change, logs an error, leaves the
// record unchanged and returns status 1; the other nodes are changed.
Task<int> DeleteNodes(Context& context, std::vector<std::string> ids);
Task<int> HoldNodes(Context& context, std::vector<std::string> ids, operate::HoldOrder order);
Task<int> UnholdNodes(Context& context, std::vector<std::string> ids);

// `nodepool delete --now ID...`: deletes the machines from this process and removes the records. For a static
// host it removes only the record; a launcher registers its slot again. If a deletion fails the record stays
// `deleting`, and launchers continue.
Task<int> DeleteNow(Context& context, std::vector<std::string> ids);

}  // namespace nodepool::cli
