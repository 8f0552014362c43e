#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "drivers/static/static_config.h"
#include "model/node.h"
#include "store/records.h"

namespace nodepool::drivers {

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
