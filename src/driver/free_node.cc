#include "driver/free_node.h"

#include "async/cleanup.h"

namespace nodepool::driver {

namespace {

Task<bool> ChangeIfFree(std::optional<store::LockedNode>& node, std::function<store::Change(Node&)> change) {
  if (!node) co_return false;
  auto if_free = [&change](Node& record) { return record.is_free() ? change(record) : store::Change::kSkip; };
  bool is_changed = co_await node->Update(if_free);
  co_return is_changed;
}

Task<> UnlockIfLocked(std::optional<store::LockedNode>& node) {
  if (node) co_await node->Unlock();
}

}  // namespace

Task<bool> ChangeFreeNode(store::Store& store, NodeId id, std::function<store::Change(Node&)> change) {
  auto use = [&change](std::optional<store::LockedNode>& node) { return ChangeIfFree(node, change); };
  bool is_changed = co_await Bracket(store.nodes.TryLock(std::move(id)), use, UnlockIfLocked);
  co_return is_changed;
}

}  // namespace nodepool::driver
