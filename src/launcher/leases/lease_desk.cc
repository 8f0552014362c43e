#include "launcher/leases/lease_desk.h"

#include <fmt/format.h>

#include "async/deadline.h"
#include "base/digest.h"
#include "base/scope_exit.h"

namespace nodepool::launcher {
namespace {

using store::Change;
using Result = PlacedOrder::Result;

constexpr std::size_t kMaxWaits = 100;
constexpr std::size_t kIdDigits = 32;

Lease LeaseFor(const LeaseOrder& order, WallTime now) {
  Lease lease;
  lease.state = LeaseState::kWaiting;
  lease.client = order.client;
  lease.labels = order.labels;
  lease.requestor = order.requestor;
  lease.tenant_name = order.tenant;
  lease.lease_seconds = order.lease_seconds;
  lease.created_time = now;
  lease.renewed_time = now;
  lease.asked = order.asked;
  return lease;
}

// The newline is in no token's name.
LeaseId IdOfKey(const LeaseOrder& order) {
  return LeaseId(Sha256Hex(order.client + "\n" + order.key).substr(0, kIdDigits));
}

bool IsWaiting(const store::StoredLease* lease) {
  return lease != nullptr && lease->record.state == LeaseState::kWaiting;
}

}  // namespace

LeaseDesk::LeaseDesk(Context& context) : context_(context) {
  changes_ =
      context_.leases.OnChange([this](const LeaseId& id, const auto*, const store::StoredLease* after) {
        if (IsWaiting(after)) return;
        if (auto waiting = waiting_.find(id); waiting != waiting_.end()) waiting->second.NotifyAll();
      });
}

LeaseDesk::~LeaseDesk() = default;

std::size_t LeaseDesk::NodesOf(const std::string& client) const {
  auto more = being_made_.find(client);
  return context_.leases.NodeCountOf(client) + (more == being_made_.end() ? 0 : more->second);
}

Task<PlacedOrder> LeaseDesk::Place(LeaseOrder order) {
  if (!order.key.empty()) {
    std::optional<store::StoredLease> existing = co_await Find(IdOfKey(order));
    if (existing) co_return co_await Repeat(existing->id, order);
  }
  std::size_t nodes = NodesOf(order.client);
  bool is_too_much = order.max_nodes && nodes + order.labels.size() > *order.max_nodes;
  if (is_too_much) co_return PlacedOrder{Result::kTooMany, {}, nodes};
  std::size_t& being_made = being_made_[order.client];
  std::size_t count = order.labels.size();
  being_made += count;
  ScopeExit made([this, client = order.client, count] {
    auto entry = being_made_.find(client);
    entry->second -= count;
    if (entry->second == 0) being_made_.erase(entry);
  });
  PlacedOrder placed = co_await Make(std::move(order));
  co_return placed;
}

Task<PlacedOrder> LeaseDesk::Make(LeaseOrder order) {
  WallTime now = context_.loop.Now();
  LeaseId id = order.key.empty() ? LeaseId(context_.random.UuidHex()) : IdOfKey(order);
  Lease lease = LeaseFor(order, now);
  NodeRequest request = RequestFor(id, lease, now);
  request.provider = order.provider;
  request.relative_priority = order.relative_priority;
  std::string precedence = fmt::format("{:03}", order.priority);
  bool is_made = co_await context_.store.leases.Create(id, std::move(lease), std::move(request), precedence);
  co_await context_.leases.CatchUp();
  if (!is_made) co_return co_await Repeat(id, order);
  co_return PlacedOrder{Result::kMade, id, 0};
}

Task<PlacedOrder> LeaseDesk::Repeat(LeaseId id, const LeaseOrder& order) {
  std::optional<store::StoredLease> lease = co_await Find(id);
  if (!lease)
    throw Error(Verdict::kRetry, "the lease of this idempotency key has just ended; try again");
  bool is_same = lease->record.asked == order.asked;
  co_return PlacedOrder{is_same ? Result::kRepeated : Result::kDiffers, id, 0};
}

Task<std::optional<store::StoredLease>> LeaseDesk::Find(LeaseId id) {
  if (context_.leases.Find(id) == nullptr) co_await context_.leases.CatchUp();
  const store::StoredLease* found = context_.leases.Find(id);
  if (found == nullptr) co_return std::nullopt;
  co_return *found;
}

Task<> LeaseDesk::AwaitDecision(LeaseId id, SteadyTime deadline) {
  if (waits_ >= kMaxWaits) co_return;
  ++waits_;
  ScopeExit done([this, id] {
    --waits_;
    if (auto waiting = waiting_.find(id); waiting != waiting_.end() && waiting->second.empty())
      waiting_.erase(waiting);
  });
  co_await EndsBy(context_.loop, deadline, "waiting for nodes", Wait(id));
}

Task<> LeaseDesk::Wait(LeaseId id) {
  while (IsWaiting(context_.leases.Find(id))) co_await waiting_[id].Wait();
}

Task<bool> LeaseDesk::Renew(LeaseId id) {
  auto renew = [now = context_.loop.Now()](Lease& lease) {
    bool may_renew = lease.state == LeaseState::kWaiting || lease.state == LeaseState::kHeld;
    if (!may_renew) return Change::kSkip;
    lease.renewed_time = now;
    return Change::kWrite;
  };
  bool is_done = co_await context_.store.leases.Update(id, renew);
  if (is_done) co_await context_.leases.CatchUp();
  co_return is_done;
}

Task<bool> LeaseDesk::End(LeaseId id) {
  bool was_ending = false;
  auto end = [&was_ending](Lease& lease) {
    was_ending = lease.state == LeaseState::kEnding;
    if (was_ending) return Change::kSkip;
    lease.state = LeaseState::kEnding;
    return Change::kWrite;
  };
  bool is_done = co_await context_.store.leases.Update(id, end);
  co_return is_done || was_ending;
}

Task<bool> LeaseDesk::HoldNode(LeaseId id, NodeId node, std::string reason,
                               std::optional<std::int64_t> seconds) {
  bool is_done = co_await context_.store.leases.HoldNode(id, node, std::move(reason), seconds);
  if (is_done) co_await context_.leases.CatchUp();
  co_return is_done;
}

}  // namespace nodepool::launcher
