#include "operate/nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/cleanup.h"

namespace nodepool::operate {
namespace {

constexpr std::size_t kIdDigits = 10;

using Locked = std::expected<store::LockedNode, Refusal>;
// Changes the record, or says why it must not be changed.
using ChangeNode = std::function<Done(Node&)>;

std::unexpected<Refusal> NoSuchNode(const NodeId& id) {
  return NotFound(fmt::format("Node id {} not found", id));
}

Task<> UnlockIfLocked(Locked& node) {
  if (node) co_await node->Unlock();
}

Task<Done> UpdateLocked(Locked& node, ChangeNode change) {
  if (!node) co_return std::unexpected(node.error());
  Done allowed;
  auto apply = [&](Node& record) {
    allowed = change(record);
    return allowed ? store::Change::kWrite : store::Change::kSkip;
  };
  co_await node->Update(apply);
  co_return allowed;
}

Task<Done> LockAndChange(Loop& loop, store::Store& store, NodeId id, Duration patience, ChangeNode change) {
  auto work = [&change](Locked& node) { return UpdateLocked(node, change); };
  Done done = co_await Bracket(LockNode(loop, store, std::move(id), patience), work, &UnlockIfLocked);
  co_return done;
}

}  // namespace

std::optional<NodeId> ParseNodeId(std::string_view text) {
  bool is_number = !text.empty() && text.size() <= kIdDigits &&
                   std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? std::optional(NodeId(fmt::format("{:0>10}", text))) : std::nullopt;
}

Task<std::expected<store::LockedNode, Refusal>> LockNode(Loop& loop, store::Store& store, NodeId id,
                                                         Duration patience) {
  std::optional<store::StoredNode> node = co_await store.nodes.Read(id);
  if (!node) co_return NoSuchNode(id);
  SteadyTime deadline = loop.SteadyNow() + patience;
  Outcome<std::optional<store::LockedNode>> locked = co_await Attempt(store.nodes.Lock(id, deadline));
  if (FailedWith(locked, Verdict::kNotFound)) co_return NoSuchNode(id);
  if (!locked) locked.error().Rethrow();
  if (!*locked) {
    co_return Conflict(fmt::format(
        "Timeout trying to acquire lock /nodepool/nodes/{}/lock: the node is in use, or being launched or "
        "deleted",
        id));
  }
  co_return std::move(**locked);
}

Task<Done> HoldNode(Loop& loop, store::Store& store, NodeId id, HoldOrder order, Duration patience) {
  auto hold = [&loop, order](Node& node) -> Done {
    node.SetState(NodeState::kHold, loop.Now());
    if (order.comment) node.comment = *order.comment;
    if (order.seconds) node.hold_expiration = *order.seconds;
    return {};
  };
  return LockAndChange(loop, store, std::move(id), patience, hold);
}

Task<Done> EndHold(Loop& loop, store::Store& store, NodeId id, Duration patience) {
  auto end = [&loop, id](Node& node) -> Done {
    if (node.state != NodeState::kHold) return Conflict(fmt::format("Node {} is not held", id));
    node.SetState(NodeState::kUsed, loop.Now());
    return {};
  };
  return LockAndChange(loop, store, id, patience, end);
}

Task<Done> DeleteNode(Loop& loop, store::Store& store, NodeId id, Duration patience) {
  auto mark = [&loop](Node& node) -> Done {
    node.SetState(NodeState::kDeleting, loop.Now());
    return {};
  };
  return LockAndChange(loop, store, std::move(id), patience, mark);
}

}  // namespace nodepool::operate
