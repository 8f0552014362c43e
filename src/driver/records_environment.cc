#include "driver/records_environment.h"

#include "async/task.h"

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

Task<bool> DeleteFreeNode(store::Store& store, NodeId id, boost::json::value external_id, WallTime now) {
  auto change = [&external_id, now](Node& record) {
    if (record.external_id != external_id) return store::Change::kSkip;
    record.SetState(NodeState::kDeleting, now);
    return store::Change::kWrite;
  };
  bool is_marked = co_await ChangeFreeNode(store, std::move(id), change);
  co_return is_marked;
}

}  // namespace nodepool::driver
