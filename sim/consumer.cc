#include "sim/consumer.h"

#include <fmt/format.h>

namespace nodepool::sim {

using store::Change;

namespace {

// Another contender for the same node may need a moment to leave the queue.
constexpr Duration kLockLimit = std::chrono::seconds(30);

}  // namespace

Consumer::Consumer(Loop& loop, testing::MemoryZk& zk, Random& faults, Inspector& inspector,
                   std::uint64_t seed, std::string name, Tally& tally)
    : loop_(loop),
      inspector_(inspector),
      tally_(tally),
      random_(seed),
      zk_(loop, zk, faults),
      store_(loop, zk_, random_),
      participant_(std::make_shared<Participant>()),
      tasks_(loop, log::Logger("sim.consumer")) {
  participant_->name = std::move(name);
  participant_->client = &zk_;
  inspector_.Add(participant_);
}

Consumer::~Consumer() { participant_->client = nullptr; }

void Consumer::Submit(RequestPlan plan) { tasks_.Spawn("consume", Serve(std::move(plan))); }

void Consumer::Vanish(testing::MemoryZk::UnderWay under_way) {
  if (inspector_.trace) inspector_.trace("* " + participant_->name + " vanishes");
  zk_.Kill(under_way);
  tasks_.CancelAll();
}

Task<> Consumer::Serve(RequestPlan plan) {
  NodeRequest request;
  request.SetState(RequestState::kRequested, loop_.Now());
  request.node_types = plan.labels;
  request.reuse = plan.reuse;
  request.requestor = "zuul";
  request.tenant_name = plan.tenant;
  request.provider = plan.provider;
  request.relative_priority = plan.relative_priority;
  RequestId id = co_await store_.requests.Create(plan.precedence, std::move(request), true);
  ++tally_.submitted;
  if (plan.reprioritise_after) tasks_.Spawn("reprioritise", Reprioritise(id, *plan.reprioritise_after));
  if (plan.withdraw_after) tasks_.Spawn("withdraw the request", WithdrawLater(id, *plan.withdraw_after));
  co_await AwaitDecision(id);
  auto decided = inspector_.requests().find(id);
  if (decided == inspector_.requests().end()) co_return;
  NodeRequest answer = decided->second;
  if (answer.state == RequestState::kFailed) {
    ++tally_.failed;
    co_return co_await store_.requests.Delete(id);
  }
  ++tally_.fulfilled;
  co_await loop_.SleepFor(plan.pickup);
  // Withdrawn meanwhile: the nodes are no longer ours.
  if (!inspector_.requests().contains(id)) co_return;
  if (plan.ending == RequestPlan::Ending::kUntaken) co_return co_await store_.requests.Delete(id);
  std::vector<store::LockedNode> nodes = co_await Take(id, std::move(answer));
  co_await store_.requests.Delete(id);
  co_await Use(std::move(nodes), std::move(plan));
}

Task<> Consumer::AwaitDecision(RequestId id) {
  while (true) {
    auto request = inspector_.requests().find(id);
    if (request == inspector_.requests().end()) co_return;
    if (request->second.state == RequestState::kFulfilled || request->second.state == RequestState::kFailed)
      co_return;
    co_await inspector_.RequestChanged(id);
  }
}

Task<> Consumer::Reprioritise(RequestId id, Duration after) {
  co_await loop_.SleepFor(after);
  std::optional<store::LockedRequest> request = co_await store_.requests.TryLock(id);
  if (!request) co_return;
  std::int64_t priority = static_cast<std::int64_t>(random_.Below(5));
  auto change = [priority](NodeRequest& record) {
    if (record.state != RequestState::kRequested) return Change::kSkip;
    record.relative_priority = priority;
    return Change::kWrite;
  };
  co_await request->UpdateAndUnlock(change);
}

Task<> Consumer::WithdrawLater(RequestId id, Duration after) {
  co_await loop_.SleepFor(after);
  if (!inspector_.requests().contains(id)) co_return;
  ++tally_.withdrawn;
  co_await store_.requests.Delete(id);
}

// No other process may change these nodes while the request exists.
Task<std::vector<store::LockedNode>> Consumer::Take(RequestId id, NodeRequest request) {
  std::vector<store::LockedNode> taken;
  for (const NodeId& node : request.nodes) {
    SteadyTime deadline = loop_.SteadyNow() + kLockLimit;
    std::optional<store::LockedNode> locked = co_await store_.nodes.Lock(node, deadline);
    bool is_ours =
        locked && locked->record().allocated_to == id && locked->record().state == NodeState::kReady;
    if (is_ours) {
      taken.push_back(std::move(*locked));
      continue;
    }
    // Expected only if the same client has just withdrawn the request.
    if (locked) co_await locked->Unlock();
    if (inspector_.requests().contains(id) && !zk_.is_dead()) {
      inspector_.Report(
          fmt::format("{} cannot take node {} of its fulfilled request {}", participant_->name, node, id),
          {id.value, node.value});
    }
  }
  co_return taken;
}

Task<> Consumer::Use(std::vector<store::LockedNode> nodes, RequestPlan plan) {
  WallTime now = loop_.Now();
  auto use = [now](Node& node) {
    node.SetState(NodeState::kInUse, now);
    return Change::kWrite;
  };
  for (store::LockedNode& node : nodes) co_await node.Update(use);
  co_await loop_.SleepFor(plan.use);
  now = loop_.Now();
  bool is_held = plan.ending == RequestPlan::Ending::kHeld;
  auto give_back = [now, is_held](Node& node) {
    node.SetState(is_held ? NodeState::kHold : NodeState::kUsed, now);
    if (is_held) node.hold_expiration = 60;
    return Change::kWrite;
  };
  for (store::LockedNode& node : nodes) {
    if (plan.ending != RequestPlan::Ending::kAbandoned) co_await node.Update(give_back);
    co_await node.Unlock();
  }
}

}  // namespace nodepool::sim
