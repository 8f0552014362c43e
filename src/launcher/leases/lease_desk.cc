#include "launcher/leases/lease_desk.h"

#include <fmt/format.h>

#include <ranges>

#include "async/deadline.h"
#include "base/crypto.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "model/image.h"
#include "sched/requests/question.h"

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
  changes_ = context_.caches.leases.OnChange(
      [this](const LeaseId& id, const auto*, const store::StoredLease* after) {
        if (IsWaiting(after)) return;
        if (auto waiting = waiting_.find(id); waiting != waiting_.end()) waiting->second.NotifyAll();
      });
}

LeaseDesk::~LeaseDesk() = default;

std::size_t LeaseDesk::NodesOf(const std::string& client) const {
  return context_.caches.leases.NodeCountOf(client) + FindOrEmpty(being_made_, client).nodes +
         HeldNodesOf(client);
}

// A node that is being held may be in neither cache for a moment.
std::size_t LeaseDesk::HeldNodesOf(const std::string& client) const {
  const std::set<NodeId>& held = context_.caches.nodes.HeldBy(client);
  std::set<NodeId> unseen;
  auto [begin, end] = being_held_.equal_range(client);
  for (const auto& [key, node] : std::ranges::subrange(begin, end)) {
    if (!held.contains(node) && context_.caches.leases.Holding(node) == nullptr) unseen.insert(node);
  }
  return held.size() + unseen.size();
}

Result LeaseDesk::Check(const LeaseOrder& order) const {
  if (context_.caches.leases.all().size() + leases_being_made_ >= kMaxLeases) return Result::kFull;
  std::size_t leases = context_.caches.leases.OfClient(order.client).size();
  if (leases + FindOrEmpty(being_made_, order.client).leases >= kMaxLeasesOfClient)
    return Result::kTooManyLeases;
  bool is_too_much = order.max_nodes && NodesOf(order.client) + order.labels.size() > *order.max_nodes;
  return is_too_much ? Result::kTooMany : Result::kMade;
}

// What this launcher has configured comes, also while a provider of it cannot be used.
std::string LeaseDesk::FaultOf(const std::vector<LabelName>& labels) const {
  std::vector<const Component*> components;
  for (const auto& [path, component] : context_.caches.components.all()) components.push_back(&component);
  std::set<LabelName> configured;
  std::set<ProviderName> known;
  for (const auto& [name, provider] : context_.config->providers) {
    known.insert(name);
    for (const auto& [pool_name, pool] : provider->pools) {
      for (const auto& [label, settings] : pool->labels) {
        if (!IsValidationLabel(label)) configured.insert(label);
      }
    }
  }
  return sched::FaultOfLabels(labels, components, configured, known);
}

Task<PlacedOrder> LeaseDesk::Place(LeaseOrder order) {
  if (!order.key.empty()) {
    std::optional<store::StoredLease> existing = co_await Find(IdOfKey(order));
    if (existing) co_return co_await Repeat(existing->id, order);
  }
  std::string fault = FaultOf(order.labels);
  if (!fault.empty()) co_return PlacedOrder{Result::kNotOffered, {}, 0, std::move(fault)};
  Result result = Check(order);
  if (result != Result::kMade) co_return PlacedOrder{result, {}, NodesOf(order.client)};
  std::size_t count = order.labels.size();
  BeingMade& begun = being_made_[order.client];
  ++begun.leases;
  begun.nodes += count;
  ++leases_being_made_;
  ScopeExit ended([this, client = order.client, count] {
    auto entry = being_made_.find(client);
    entry->second.nodes -= count;
    if (--entry->second.leases == 0) being_made_.erase(entry);
    --leases_being_made_;
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
  co_await context_.caches.leases.CatchUp();
  if (!is_made) co_return co_await Repeat(id, order);
  co_return PlacedOrder{Result::kMade, id, 0};
}

Task<PlacedOrder> LeaseDesk::Repeat(LeaseId id, const LeaseOrder& order) {
  std::optional<store::StoredLease> lease = co_await Find(id);
  if (!lease) throw Error(Verdict::kRetry, "the lease of this idempotency key has just ended; try again");
  bool is_same = lease->record.asked == order.asked;
  co_return PlacedOrder{is_same ? Result::kRepeated : Result::kDiffers, id, 0};
}

Task<std::optional<store::StoredLease>> LeaseDesk::Find(LeaseId id) {
  if (context_.caches.leases.Find(id) == nullptr) co_await context_.caches.leases.CatchUp();
  const store::StoredLease* found = context_.caches.leases.Find(id);
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
  while (IsWaiting(context_.caches.leases.Find(id))) co_await waiting_[id].Wait();
}

// A renewal by another process or request meanwhile counts: many at once would only keep each other from
// writing. It is told by a change of the time, whose order clocks may spoil.
Task<bool> LeaseDesk::Renew(LeaseId id) {
  std::optional<Lease> before;
  bool is_renewed = false;
  auto renew = [now = context_.loop.Now(), &before, &is_renewed](Lease& lease) {
    if (!before) before = lease;
    bool may_renew = lease.state == LeaseState::kWaiting || lease.state == LeaseState::kHeld;
    is_renewed = may_renew && lease.renewed_time != before->renewed_time;
    if (!may_renew || is_renewed) return Change::kSkip;
    lease.renewed_time = now;
    return Change::kWrite;
  };
  bool is_written = co_await context_.store.leases.Update(id, renew);
  if (is_written || is_renewed) co_await context_.caches.leases.CatchUp();
  co_return is_written || is_renewed;
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
  const store::StoredLease* lease = context_.caches.leases.Find(id);
  std::string client = lease == nullptr ? "" : lease->record.client;
  auto entry = being_held_.emplace(client, node);
  ScopeExit seen([this, entry] { being_held_.erase(entry); });
  bool is_done = co_await context_.store.leases.HoldNode(id, node, std::move(reason), seconds);
  if (is_done) co_await context_.caches.leases.CatchUp();
  if (is_done) co_await context_.caches.nodes.CatchUp();
  co_return is_done;
}

}  // namespace nodepool::launcher
