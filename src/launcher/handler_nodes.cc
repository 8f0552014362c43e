#include "launcher/handler.h"

// How a handler takes and launches the nodes of its request (launcher.md 10.3, 10.4, 15.3).

namespace nodepool::launcher {

using store::Change;

Task<> Handler::TryReuse(sched::FillPlan::Reuse reuse) {
  auto claim = claims_.extract(reuse.node);
  // Whatever happens, the plan is made again: this node is had or out of the question.
  changed_.Set();
  const store::StoredNode* cached = context_.nodes.Find(reuse.node);
  if (cached == nullptr) co_return;
  store::StoredNode candidate = *cached;
  std::shared_ptr<DriverSide> driver = driver_;
  bool is_fit = co_await driver->handler->CheckReusableNode(candidate);
  if (!is_fit) {
    Reject(reuse.node);
    co_return;
  }
  auto locked = co_await context_.store.nodes.TryLock(reuse.node);
  if (!locked) {
    Reject(reuse.node);
    // Until the cache shows it, every other request of ours would try the same node.
    co_return co_await CatchUpWithNodes();
  }
  bool is_allocated = co_await Allocate(*locked);
  if (!is_allocated) {
    Reject(reuse.node);
    co_return co_await locked->Unlock();
  }
  logger_.About({logger_.ids().event, id().value, reuse.node.value}).Info("Assigned ready node");
  driver->handler->NodeReused(locked->record());
  slots_.push_back(std::make_shared<Slot>(Slot{reuse.label, Slot::State::kReady, std::move(locked)}));
}

Task<bool> Handler::Allocate(store::LockedNode& node) {
  PoolKey pool = host_.key();
  RequestId request = id();
  std::optional<std::string> tenant = request_->record().tenant_name;
  std::optional<std::string> requestor = request_->record().requestor;
  auto allocate = [pool, request, tenant, requestor](Node& record) {
    if (!record.is_free() || record.provider != pool.provider || record.pool != pool.pool)
      return Change::kSkip;
    record.allocated_to = request;
    record.tenant_name = tenant;
    record.requestor = requestor;
    return Change::kWrite;
  };
  Node copy = node.record();
  if (allocate(copy) == Change::kSkip) co_return false;
  std::exception_ptr error;
  bool is_allocated = false;
  try {
    is_allocated = co_await BecomePending() && co_await node.Update(allocate);
  } catch (...) {
    error = std::current_exception();
  }
  if (!error) co_return is_allocated;
  if (VerdictOf(error) == Verdict::kCancelled) co_await IgnoreCancellation();
  if (node.is_held()) co_await node.Unlock();
  std::rethrow_exception(error);
}

// False: somebody else has changed its state, or it is gone.
Task<bool> Handler::BecomePending() {
  if (request_->record().state == RequestState::kPending) co_return true;
  WallTime now = context_.loop.Now();
  auto become_pending = [now](NodeRequest& request) {
    if (request.state != RequestState::kRequested) return Change::kSkip;
    request.SetState(RequestState::kPending, now);
    return Change::kWrite;
  };
  co_return co_await request_->Update(become_pending);
}

// The node may be had again later: whoever was busy with it is done, the host came back.
void Handler::Reject(const NodeId& node) {
  SteadyTime until = context_.loop.SteadyNow() + context_.intervals.reuse_retry;
  rejected_[node] = until;
  timers_.Spawn("try a refused node again", logger_.ids(), WakeAt(until));
}

bool Handler::IsRejected(const NodeId& node) const {
  auto rejected = rejected_.find(node);
  return rejected != rejected_.end() && context_.loop.SteadyNow() < rejected->second;
}

void Handler::StartLaunch(const LabelName& label, const Resources& need) {
  auto slot = std::make_shared<Slot>();
  slot->label = label;
  slots_.push_back(slot);
  slot->entry = ledger_.Commit(host_.key(), need);
  entries_.push_back(slot->entry);
  launches_.Spawn("launch " + label.value, logger_.ids(), LaunchSlot(slot, driver_));
}

Task<> Handler::LaunchSlot(std::shared_ptr<Slot> slot, std::shared_ptr<DriverSide> driver) {
  struct Counted {
    Ledger& ledger;
    HandlerHost& host;
    Counted(Ledger& l, HandlerHost& h) : ledger(l), host(h) { ledger.BeginLaunch(host.key().provider); }
    ~Counted() {
      ledger.EndLaunch(host.key().provider);
      host.LaunchEnded();
    }
  } counted(ledger_, host_);
  std::exception_ptr error;
  try {
    co_await CreateAndLaunch(slot, driver);
  } catch (...) {
    error = std::current_exception();
  }
  struct Notify {
    Event& event;
    ~Notify() { event.Set(); }
  } notify{changed_};
  if (!error) {
    slot->state = Slot::State::kReady;
    co_return;
  }
  if (!slot->node) ledger_.Release(slot->entry);
  bool is_refused = VerdictOf(error) == Verdict::kQuota;
  if (VerdictOf(error) != Verdict::kCancelled && VerdictOf(error) != Verdict::kLostSession) {
    std::string node_id = slot->node ? slot->node->id().value : "";
    logger_.About({logger_.ids().event, id().value, node_id})
        .Warning("Launch of {} {}: {}", slot->label, is_refused ? "refused for quota" : "failed",
                 MessageOf(error));
    co_await MarkEnded(slot, is_refused ? NodeState::kAborted : NodeState::kFailed);
  }
  slot->state = is_refused ? Slot::State::kAborted : Slot::State::kFailed;
}

// Stores the end of a launch in the node's record (D-11).
Task<> Handler::MarkEnded(std::shared_ptr<Slot> slot, NodeState state) {
  if (!slot->node) co_return;
  WallTime now = context_.loop.Now();
  auto mark = [state, now](Node& node) {
    node.SetState(state, now);
    return Change::kWrite;
  };
  std::exception_ptr error;
  try {
    co_await slot->node->Update(mark);
  } catch (...) {
    error = std::current_exception();
  }
  if (error)
    logger_.Warning("Node {} could not be marked {}: {}", slot->node->id(), ToString(state),
                    MessageOf(error));
}

Task<> Handler::CreateAndLaunch(std::shared_ptr<Slot> slot, std::shared_ptr<DriverSide> driver) {
  Node node = NewNode(slot->label);
  co_await driver->handler->SetNodeMetadata(node);
  WallTime now = context_.loop.Now();
  auto start = [now](Node& record) {
    record.SetState(NodeState::kBuilding, now);
    return Change::kWrite;
  };
  store::LockedNode locked = co_await context_.store.nodes.CreateLocked(std::move(node), start);
  slot->node.emplace(std::move(locked));
  ledger_.SetNode(slot->entry, slot->node->id());
  logger_.About({logger_.ids().event, id().value, slot->node->id().value}).Info("Launching {}", slot->label);
  co_await driver->handler->Launch(*slot->node);
}

Node Handler::NewNode(const LabelName& label) const {
  const NodeRequest& request = request_->record();
  Node node;
  node.SetState(NodeState::kInit, context_.loop.Now());
  node.created_time = node.state_time;
  node.type = {label};
  node.provider = host_.key().provider;
  node.pool = host_.key().pool;
  node.launcher = host_.launcher_id().value;
  node.allocated_to = id();
  node.tenant_name = request.tenant_name;
  node.requestor = request.requestor;
  node.attributes = host_.pool_config()->node_attributes;
  node.username = std::nullopt;
  return node;
}

// A node refused for quota costs no attempt: it is let go, the deleted-node worker
// removes it, and another one is made when there is room (launcher.md 15.3).
Task<> Handler::DropAborted() {
  for (std::size_t i = 0; i < slots_.size();) {
    std::shared_ptr<Slot> slot = slots_[i];
    if (slot->state != Slot::State::kAborted) {
      ++i;
      continue;
    }
    slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(i));
    if (slot->node) co_await slot->node->Unlock();
    // Somebody may delete the node before our cache has ever shown it.
    ledger_.Release(slot->entry);
    if (refused_until_ && context_.loop.SteadyNow() < *refused_until_) continue;
    refused_until_ = context_.loop.SteadyNow() + refusal_backoff_.Next();
    ++refusals_;
    timers_.Spawn("wait after a refusal", logger_.ids(), WakeAt(*refused_until_));
  }
}

}  // namespace nodepool::launcher
