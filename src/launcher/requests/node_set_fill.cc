#include "async/cleanup.h"
#include "base/scope_exit.h"
#include "driver/refusal.h"
#include "launcher/requests/node_set.h"
#include "launcher/requests/unlock.h"
#include "store/repeat.h"

// How the nodes of a request are reused and launched.

namespace nodepool::launcher {

using store::Change;

namespace {

Task<bool> CatchUpWith(store::NodeCache& nodes) {
  co_await nodes.CatchUp();
  co_return true;
}

// What a launch of the label was refused for; where that is unknown, nothing but the label itself is
// concerned.
Refusals::Refusal RefusalOf(const Failure& failure, const LabelName& label) {
  Refusals::Refusal refusal;
  try {
    failure.Rethrow();
  } catch (const driver::Refusal& fault) {
    refusal.what.resources = fault.resources();
    refusal.lacks_capacity = fault.kind() == driver::Refusal::Kind::kCapacity;
  } catch (...) {
  }
  if (refusal.what.resources.empty()) refusal.what.labels.insert(label);
  return refusal;
}

// False: the client or another launcher has changed the request's state, or it is gone.
Task<bool> BecomePending(store::LockedRequest& request, WallTime now) {
  if (request.record().state == RequestState::kPending) co_return true;
  auto become_pending = [now](NodeRequest& record) {
    if (record.state != RequestState::kRequested) return Change::kSkip;
    record.SetState(RequestState::kPending, now);
    return Change::kWrite;
  };
  co_return co_await request.Update(become_pending);
}

}  // namespace

void NodeSet::Claim(const std::vector<sched::FillPlan::Reuse>& reuses) {
  for (const auto& reuse : reuses) claims_.emplace(reuse.node, NodeClaim(context_.ledger, reuse.node));
}

Task<> NodeSet::CatchUp() {
  std::function<Task<bool>()> catch_up = [this] { return CatchUpWith(context_.caches.nodes); };
  co_await store::Repeat<bool>(context_.loop, context_.random, catch_up);
}

Task<> NodeSet::Reuse(sched::FillPlan::Reuse reuse, std::shared_ptr<DriverSide> driver,
                      store::LockedRequest& request) {
  auto claim = claims_.extract(reuse.node);
  const store::StoredNode* cached = context_.caches.nodes.Find(reuse.node);
  if (cached == nullptr) co_return;
  store::StoredNode candidate = *cached;
  bool is_fit = co_await driver->handler->CheckReusableNode(candidate);
  if (!is_fit) co_return rejected_.Add(reuse.node);
  auto locked = co_await context_.store.nodes.TryLock(reuse.node);
  if (!locked) {
    rejected_.Add(reuse.node);
    // Until the cache shows the lock, every other request of ours would try the same node.
    co_return co_await CatchUp();
  }
  auto unlock = [&locked](const Failure&) { return UnlockIfHeld(locked); };
  bool is_allocated = co_await OnFailure(Allocate(*locked, request), unlock);
  if (!is_allocated) {
    rejected_.Add(reuse.node);
    co_return co_await locked->Unlock();
  }
  About(reuse.node).Info("Assigned ready node");
  driver->handler->NodeReused(locked->record());
  slots_.push_back(
      std::make_shared<Slot>(Slot{reuse.label, Slot::State::kReady, std::move(locked), std::nullopt}));
}

Task<bool> NodeSet::Allocate(store::LockedNode& node, store::LockedRequest& request) {
  PoolKey pool = pool_.key();
  RequestId id = request.id();
  std::optional<std::string> tenant = request.record().tenant_name;
  std::optional<std::string> requestor = request.record().requestor;
  auto allocate = [pool, id, tenant, requestor](Node& record) {
    if (!record.is_free() || record.provider != pool.provider || record.pool != pool.pool)
      return Change::kSkip;
    record.allocated_to = id;
    record.tenant_name = tenant;
    record.requestor = requestor;
    return Change::kWrite;
  };
  Node copy = node.record();
  if (allocate(copy) == Change::kSkip) co_return false;
  bool is_pending = co_await BecomePending(request, context_.loop.Now());
  if (!is_pending) co_return false;
  co_return co_await node.Update(allocate);
}

void NodeSet::Launch(Node node, const Resources& need, std::shared_ptr<DriverSide> driver) {
  LabelName label = node.type.front();
  auto slot = std::make_shared<Slot>(Slot{label, Slot::State::kLaunching, std::nullopt, std::nullopt});
  slot->launch.emplace(context_.ledger, pool_.key(), need);
  slots_.push_back(slot);
  launches_.Spawn("launch " + label.value, logger_.ids(),
                  RunLaunch(slot, std::move(node), std::move(driver)));
}

Task<> NodeSet::RunLaunch(std::shared_ptr<Slot> slot, Node node, std::shared_ptr<DriverSide> driver) {
  ScopeExit ended([this, slot] { LaunchEnded(*slot); });
  Outcome<> launched = co_await Attempt(CreateAndLaunch(slot, std::move(node), std::move(driver)));
  if (launched) {
    slot->state = Slot::State::kReady;
  } else {
    co_await Failed(slot, launched.error());
  }
}

void NodeSet::LaunchEnded(Slot& slot) {
  if (slot.state == Slot::State::kLaunching) slot.state = Slot::State::kFailed;
  slot.launch->EndLaunch();
  if (!slot.node) slot.launch->FreeResources();
  changed_.Set();
  // Other requests may launch now.
  if (pool_.provider_config().max_concurrency > 0) context_.ledger.CapacityChanged();
}

// Writes the failure of a launch to the node's record (D-11).
Task<> NodeSet::Failed(std::shared_ptr<Slot> slot, Failure failure) {
  bool is_refused = failure.verdict() == Verdict::kQuota;
  std::string why = fmt::format("the launch of {} failed: {}", slot->label, failure.message());
  if (!is_refused) last_fault_ = why;
  if (failure.verdict() == Verdict::kLostSession) co_return;
  std::optional<NodeId> id;
  if (slot->node) id = slot->node->id();
  Refusals::Refusal refusal = RefusalOf(failure, slot->label);
  About(id).Warning("Launch of {} {}: {}", slot->label,
                    !is_refused              ? "failed"
                    : refusal.lacks_capacity ? "refused for lack of capacity"
                                             : "refused for quota",
                    failure.message());
  if (slot->node) {
    NodeState state = is_refused ? NodeState::kAborted : NodeState::kFailed;
    WallTime now = context_.loop.Now();
    auto mark = [state, now](Node& node) {
      node.SetState(state, now);
      return Change::kWrite;
    };
    Outcome<bool> marked = co_await Attempt(slot->node->Update(mark));
    if (!marked) {
      logger_.Warning("Node {} could not be marked {}: {}", *id, ToString(state), marked.error().message());
    }
  }
  if (!is_refused) co_return;
  slot->refusal = std::move(refusal);
  slot->refusal.why = std::move(why);
  slot->state = Slot::State::kRefused;
}

Task<> NodeSet::CreateAndLaunch(std::shared_ptr<Slot> slot, Node node, std::shared_ptr<DriverSide> driver) {
  co_await driver->handler->SetNodeMetadata(node);
  WallTime now = context_.loop.Now();
  auto start = [now](Node& record) {
    record.SetState(NodeState::kBuilding, now);
    return Change::kWrite;
  };
  store::LockedNode locked = co_await context_.store.nodes.CreateLocked(std::move(node), start);
  slot->node.emplace(std::move(locked));
  slot->launch->SetNode(slot->node->id());
  About(slot->node->id()).Info("Launching {}", slot->label);
  co_await driver->handler->Launch(*slot->node);
}

}  // namespace nodepool::launcher
