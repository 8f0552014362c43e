#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "model/node.h"
#include "store/records.h"

namespace nodepool::drivers {

struct StaticNode;

// Identifies a configured host; the same machine with another user is another host (drivers.md 7.2).
struct HostIdentity {
  std::string name;
  std::string username;
  int port = 22;
  auto operator<=>(const HostIdentity&) const = default;

  std::string ToString() const;  // "user@name:port"
};

HostIdentity IdentityOf(const StaticNode& node);
HostIdentity IdentityOf(const Node& record);

// Which node is registered for which slot of a host.
struct SlotTable {
  std::vector<NodeId> slots;   // by slot; empty: no record
  std::vector<NodeId> excess;  // more records than slots

  std::vector<int> EmptySlots() const;
};

// The table of a host with `slot_count` slots. `records` are those of its identity;
// those that are building or about to vanish do not occupy a slot. Of two records for one slot the free one
// is in excess, since only a free one can be withdrawn.
SlotTable MakeSlotTable(int slot_count, std::vector<const store::StoredNode*> records);

}  // namespace nodepool::drivers
