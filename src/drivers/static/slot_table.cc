#include "drivers/static/slot_table.h"

#include <algorithm>

namespace nodepool::drivers {

namespace {

bool OccupiesSlot(const Node& record) {
  return record.state != NodeState::kBuilding && record.state != NodeState::kDeleting &&
         record.state != NodeState::kDeleted;
}

}  // namespace

HostIdentity IdentityOf(const Node& record) {
  int port = static_cast<int>(record.connection_port.integer().value_or(0));
  return {record.hostname.value_or(""), record.username.value_or(""), port};
}

std::vector<int> SlotTable::EmptySlots() const {
  std::vector<int> empty;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot].empty()) empty.push_back(static_cast<int>(slot));
  }
  return empty;
}

SlotTable MakeSlotTable(int slot_count, std::vector<const store::StoredNode*> records) {
  std::ranges::stable_partition(records, [](const auto* node) { return !node->record.is_free(); });
  SlotTable table;
  table.slots.resize(static_cast<std::size_t>(std::max(0, slot_count)));
  std::vector<NodeId> unslotted;
  for (const store::StoredNode* node : records) {
    if (!OccupiesSlot(node->record)) continue;
    std::int64_t slot = node->record.slot.value_or(-1);
    bool is_placed = slot >= 0 && slot < slot_count && table.slots[static_cast<std::size_t>(slot)].empty();
    if (is_placed) {
      table.slots[static_cast<std::size_t>(slot)] = node->id;
    } else {
      unslotted.push_back(node->id);
    }
  }
  for (NodeId& id : unslotted) {
    auto free = std::ranges::find_if(table.slots, [](const NodeId& slot) { return slot.empty(); });
    if (free != table.slots.end()) {
      *free = std::move(id);
    } else {
      table.excess.push_back(std::move(id));
    }
  }
  return table;
}

}  // namespace nodepool::drivers
