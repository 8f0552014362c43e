#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "async/loop.h"
#include "operate/refusal.h"
#include "store/store.h"

// What operators do with nodes, by the command line and over HTTP (operations.md 5.5, http-actions.md 2).
// Each works under the node's lock and waits at most `patience` for it: kConflict.
namespace nodepool::operate {

// A node id is ten digits, of which leading zeros may be omitted; nothing for any other text.
std::optional<NodeId> ParseNodeId(std::string_view text);

struct HoldOrder {
  std::optional<std::string> comment;   // without one that of the record stays
  std::optional<std::int64_t> seconds;  // how long it is held; without them as the record says
};

Task<Done> HoldNode(Loop& loop, store::Store& store, NodeId id, HoldOrder order, Duration patience);
// Makes a held node `used`, so that a launcher deletes it. kConflict: it is not held.
Task<Done> EndHold(Loop& loop, store::Store& store, NodeId id, Duration patience);
// Makes the node `deleting`; a launcher deletes it.
Task<Done> DeleteNode(Loop& loop, store::Store& store, NodeId id, Duration patience);

// The locked node; the refusal if it is gone or locked by another client.
Task<std::expected<store::LockedNode, Refusal>> LockNode(Loop& loop, store::Store& store, NodeId id,
                                                         Duration patience);

}  // namespace nodepool::operate
