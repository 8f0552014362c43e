#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/records.h"
#include "store/tree.h"

namespace nodepool::store {

// A node and who contends for its lock, as just read, for a transaction about it.
struct LockedView {
  struct Contender {
    std::string path;
    std::string identifier;
  };

  NodeId id;
  std::optional<StoredNode> node;     // nullopt: gone, or unreadable
  bool has_directory = false;         // of the lock
  std::vector<Contender> contenders;  // the first has the lock

  bool is_locked_by(const std::string& owner) const {
    return !contenders.empty() && contenders.front().identifier == owner;
  }
};

// Reads the nodes, in this order, with two messages for all of them.
Task<std::vector<LockedView>> ReadLockedViews(Tree& tree, std::vector<NodeId> ids);

// Appends what locks the node for `owner` with a persistent contender and writes `next`. Requires that it
// exists and has no contender.
void AppendTake(std::vector<zk::Op>& ops, const LockedView& view, const std::string& owner, const Node& next,
                Random& random);

// Appends what removes the owner's contender, and, where it had the lock, applies `change` to the record.
// Nothing where the owner has no contender.
void AppendRelease(std::vector<zk::Op>& ops, const LockedView& view, const std::string& owner,
                   const std::function<Change(Node&)>& change);

}  // namespace nodepool::store
