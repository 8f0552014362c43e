#include "launcher/requests/node_set.h"

#include <algorithm>
#include <map>

#include "async/task.h"
#include "base/scope_exit.h"
#include "driver/driver.h"
#include "launcher/context.h"
#include "store/tree.h"

namespace nodepool::launcher {

using store::Change;

NodeSet::NodeSet(Context& context, Pool& pool, Event& changed, log::Logger logger)
    : context_(context),
      pool_(pool),
      changed_(changed),
      logger_(std::move(logger)),
      rejected_(context.loop, context.intervals.reuse_retry),
      launches_(context.loop, logger_) {}

log::Logger NodeSet::About(const std::optional<NodeId>& node) const {
  return logger_.About({logger_.ids().event, logger_.ids().request, node ? node->value : ""});
}

std::vector<LabelName> NodeSet::Missing(const std::vector<LabelName>& wanted) const {
  std::vector<LabelName> satisfied;
  for (const auto& slot : slots_) satisfied.push_back(slot->label);
  return sched::MissingLabels(wanted, satisfied);
}

bool NodeSet::IsComplete(const std::vector<LabelName>& wanted) const {
  return slots_.size() == wanted.size() && ready_count() == std::ssize(slots_);
}

bool NodeSet::AnyFailed() const {
  return std::ranges::any_of(slots_, [](const auto& slot) { return slot->state == Slot::State::kFailed; });
}

std::string NodeSet::LastFault() const {
  return last_fault_.empty() ? "a node failed to launch" : last_fault_;
}

std::ptrdiff_t NodeSet::ready_count() const {
  return std::ranges::count_if(slots_, [](const auto& slot) { return slot->state == Slot::State::kReady; });
}

std::vector<NodeId> NodeSet::InOrder(const std::vector<LabelName>& labels) const {
  std::vector<std::shared_ptr<Slot>> left = slots_;
  std::vector<NodeId> nodes;
  for (const LabelName& label : labels) {
    auto slot = std::ranges::find(left, label, [](const auto& candidate) { return candidate->label; });
    nodes.push_back((*slot)->node->id());
    left.erase(slot);
  }
  return nodes;
}

std::vector<store::LockedNode*> NodeSet::Locked() {
  std::vector<store::LockedNode*> locked;
  for (const auto& slot : slots_) locked.push_back(&*slot->node);
  return locked;
}

void NodeSet::Announce(DriverSide& driver) const {
  for (const auto& slot : slots_) {
    if (slot->node) driver.handler->NodeReused(slot->node->record());
  }
}

std::size_t NodeSet::ReleaseReservations() { return std::exchange(reservations_, {}).size(); }

Task<std::optional<Refusals::Refusal>> NodeSet::DropRefused() {
  auto is_refused = [](const auto& slot) { return slot->state == Slot::State::kRefused; };
  std::optional<Refusals::Refusal> sum;
  while (true) {
    auto slot = std::ranges::find_if(slots_, is_refused);
    if (slot == slots_.end()) co_return sum;
    // Stop counting its launch: the node may be deleted before our cache has ever shown it.
    std::shared_ptr<Slot> dropped = *slot;
    slots_.erase(slot);
    if (!sum) sum.emplace();
    sum->what.resources.merge(dropped->refusal.what.resources);
    sum->what.labels.merge(dropped->refusal.what.labels);
    if (dropped->refusal.lacks_capacity) {
      sum->lacks_capacity = true;
      sum->why = dropped->refusal.why;
    }
    if (dropped->node) co_await dropped->node->Unlock();
  }
}

void NodeSet::HandedOver() {
  for (const auto& slot : slots_) {
    if (slot->launch) ended_.push_back(std::move(*slot->launch));
  }
  slots_.clear();
}

Task<> NodeSet::Release(RequestId request) {
  const auto slots = slots_;
  for (const auto& slot : slots) {
    if (!slot->node) continue;
    Outcome<> released = co_await Attempt(ReleaseOne(*slot, request));
    if (!released) {
      logger_.Warning("Node {} could not be released: {}", slot->node->id(), released.error().message());
    }
    slot->node.reset();
  }
  HandedOver();
}

Task<> NodeSet::ReleaseOne(Slot& slot, RequestId request) {
  auto deallocate = [request](Node& node) {
    if (node.state != NodeState::kReady || node.allocated_to != request) return store::Change::kSkip;
    node.Free();
    return store::Change::kWrite;
  };
  if (slot.state == Slot::State::kReady) co_await slot.node->Update(deallocate);
  co_await slot.node->Unlock();
}

Task<> NodeSet::AwaitInCache() {
  auto is_pending = [](const Reservation& launch) { return launch.is_pending(); };
  if (std::ranges::none_of(ended_, is_pending)) co_return;
  co_await CatchUp();
  // The others were removed before the cache could show them.
  bool is_freed = std::ranges::any_of(ended_, is_pending);
  ended_.clear();
  if (is_freed) context_.ledger.CapacityChanged(pool_.key().provider);
}

Task<> NodeSet::Stop() {
  co_await launches_.Stop();
  for (const auto& slot : slots_) slot->launch.reset();
  ended_.clear();
}

// How the nodes of a request are reused and launched.

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
  // Tried on a copy first: the request becomes pending only for a node that it can have.
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
  if (pool_.provider_config().max_concurrency > 0) context_.ledger.CapacityChanged(pool_.key().provider);
}

// Writes the failure of a launch to the node's record (D-11).
Task<> NodeSet::Failed(std::shared_ptr<Slot> slot, Failure failure) {
  bool is_refused = failure.verdict() == Verdict::kQuota;
  std::string why = fmt::format("the launch of {} failed: {}", slot->label, failure.message());
  if (!is_refused) last_fault_ = why;
  // The lock is gone with the session, so nothing may be written (launcher.md 15.3).
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
  // Not before the record is written: DropRefused unlocks the node once it sees this state.
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

UnusedNodes::UnusedNodes(Context& context, const Pool& pool)
    : context_(context),
      pool_(pool),
      logger_(fmt::format("nodepool.PoolWorker.{}-{}", pool.key().provider, pool.key().pool)),
      tasks_(context.loop, logger_) {}

UnusedNodes::Deletion UnusedNodes::DeleteFor(const sched::FillPlan& plan, std::size_t after_refusal) {
  if (!context_.duties.deletes) return {};
  SteadyTime now = context_.loop.SteadyNow();
  SteadyTime& next_deletion = plan.is_refused ? next_after_refusal_ : next_for_limits_;
  if (now < next_deletion) return {.again_at = next_deletion};
  std::vector<NodeId> chosen = Choose(plan, after_refusal);
  if (!chosen.empty()) next_deletion = now + context_.intervals.make_room_holdoff;
  for (const NodeId& id : chosen) {
    tasks_.Spawn("delete an unused node", log::OfNode(id), Delete(id, NodeClaim(context_.ledger, id)));
  }
  bool are_all = plan.is_refused && chosen.size() < after_refusal;
  return {.nodes = std::move(chosen), .are_all = are_all};
}

// Nodes of other pools help only if the provider's quota is short. Nodes that requests wait for are deleted,
// too, if no others suffice: those requests have not taken them, and this one would wait for ever.
std::vector<NodeId> UnusedNodes::Choose(const sched::FillPlan& plan, std::size_t after_refusal) const {
  Resources shortage = plan.pool_shortage;
  for (const auto& [resource, amount] : plan.provider_shortage) {
    shortage[resource] = std::max(shortage[resource], amount);
  }
  for (const auto& [resource, amount] : plan.may_be_short) shortage[resource] = amount;
  std::vector<sched::UnusedNode> unused = UnusedIn(pool_.key());
  if (plan.pool_shortage.empty() || plan.is_refused) {
    for (const auto& [pool, use] : context_.caches.nodes.PoolsWithNodes(pool_.key().provider)) {
      if (pool == pool_.key().pool) continue;
      std::vector<sched::UnusedNode> others = UnusedIn({pool_.key().provider, pool});
      unused.insert(unused.end(), others.begin(), others.end());
    }
  }
  if (plan.is_refused) return sched::ChooseSome(std::move(unused), shortage, after_refusal);
  std::vector<NodeId> victims = sched::ChooseVictims(unused, shortage);
  // First what the pool lacks; what the provider lacks another time.
  if (victims.empty()) victims = sched::ChooseVictims(std::move(unused), plan.pool_shortage);
  return victims;
}

std::vector<sched::UnusedNode> UnusedNodes::UnusedIn(const PoolKey& pool) const {
  const auto& configured = pool_.provider_config().pools;
  auto config = configured.find(pool.pool);
  if (config == configured.end()) return {};
  std::set<LabelName> wanted = sched::LabelsToReuse(pool_.cluster().queues);
  auto is_wanted = [&](const LabelName& label) { return wanted.contains(label); };
  bool is_other = pool != pool_.key();
  std::map<NodeId, sched::UnusedNode> unused;
  for (const auto& [label, label_config] : config->second->labels) {
    for (const NodeId& id : context_.caches.nodes.FreeNodes(pool, label)) {
      const store::StoredNode* node = context_.caches.nodes.Find(id);
      if (node == nullptr) continue;
      // Requests of this pool cannot take nodes of another.
      if (!is_other && pool_.waiting().AnyTakes(*node)) continue;
      unused[id] = {.id = id,
                    .is_wanted = std::ranges::any_of(node->record.type, is_wanted),
                    .is_of_other_pool = is_other,
                    .ready_since = node->record.state_time,
                    .resources = node->record.resources.value_or(Resources{})};
    }
  }
  std::vector<sched::UnusedNode> nodes;
  for (auto& [id, node] : unused) nodes.push_back(std::move(node));
  return nodes;
}

// The claim keeps other requests of this launcher off the node until it is marked.
Task<> UnusedNodes::Delete(NodeId id, NodeClaim /*claim*/) {
  auto node = co_await context_.store.nodes.TryLock(id);
  if (!node) co_return;
  WallTime now = context_.loop.Now();
  auto mark = [now](Node& record) {
    if (!record.is_free()) return store::Change::kSkip;
    record.SetState(NodeState::kDeleting, now);
    return store::Change::kWrite;
  };
  bool is_marked = co_await node->Update(mark);
  co_await node->Unlock();
  if (is_marked)
    logger_.About(log::OfNode(id)).Info("Deleting unused node to free capacity for a waiting request");
}

}  // namespace nodepool::launcher
