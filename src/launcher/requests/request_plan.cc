#include "launcher/requests/request_run.h"

// How a request decides about the nodes that it misses, and what it waits for.

namespace nodepool::launcher {

// Decides about everything still missing, at once and without awaiting, so that no
// other decision comes in between; launches are under way when it returns.
void RequestRun::Plan() {
  const NodeRequest& request = request_->record();
  std::set<NodeId> rejected = nodes_.rejected().Current();
  WakeAt(nodes_.rejected().NextEnd());
  std::size_t kept = nodes_.FreeKept();
  sched::PoolView view = pool_.ViewFor(order_);
  plan_ = sched::PlanFill(view, nodes_.Missing(request.node_types), request.reuse, rejected);
  PauseAfterRefusal(view);
  CarryOut(view);
  if (plan_.launch.size() < kept) context_.ledger.CapacityChanged();
  if (refusals_.count() > 0 && nodes_.is_launching()) plan_.is_refused = true;
  ShowWaiting((plan_.is_refused || !plan_.wait.empty()) && !IsMinReadyInVain());
  DeleteUnusedNodes();
}

// The cloud has just refused; what it lacks is unknown, so everything counts.
void RequestRun::PauseAfterRefusal(const sched::PoolView& view) {
  if (!refusals_.IsPausing(context_.loop.SteadyNow())) return;
  WakeAt(refusals_.pause_until());
  if (plan_.launch.empty()) return;
  plan_.is_refused = true;
  plan_.wait.insert(plan_.wait.begin(), plan_.launch.begin(), plan_.launch.end());
  plan_.provider_shortage = view.labels.at(plan_.launch.front()).need;
  plan_.launch.clear();
}

// Reused nodes decide the zone of those that are launched, and take their time: the launches wait for
// them, and are planned again then.
void RequestRun::CarryOut(const sched::PoolView& view) {
  nodes_.Claim(plan_.reuse);
  for (const LabelName& label : plan_.launch) {
    const Resources& need = view.labels.at(label).need;
    if (plan_.reuse.empty()) {
      nodes_.Launch(NewNode(label), need, driver_);
    } else {
      nodes_.Keep(need);
    }
  }
}

Node RequestRun::NewNode(const LabelName& label) const {
  const NodeRequest& request = request_->record();
  Node node;
  node.SetState(NodeState::kInit, context_.loop.Now());
  node.created_time = node.state_time;
  node.type = {label};
  node.provider = pool_.key().provider;
  node.pool = pool_.key().pool;
  node.launcher = pool_.launcher_id().value;
  node.allocated_to = id();
  node.tenant_name = request.tenant_name;
  node.requestor = request.requestor;
  node.attributes = pool_.config()->node_attributes;
  node.username = std::nullopt;
  return node;
}

void RequestRun::DeleteUnusedNodes() {
  constexpr int kOftenRefused = 3;  // then what we keep unused may be the reason
  bool is_known = !refusals_.IsPausing(context_.loop.SteadyNow()) || refusals_.count() >= kOftenRefused;
  // No node is deleted for a min-ready one (launcher.md 10.4).
  if (plan_.MissingResource().empty() || !is_known || IsMinReady()) return;
  if (std::optional<SteadyTime> again_at = unused_nodes_.DeleteFor(plan_)) WakeAt(*again_at);
}

bool RequestRun::IsMinReady() const { return seen_.record.requestor == kMinReadyRequestor; }

// It waits for nothing, and keeps nothing from others (D-27).
bool RequestRun::IsMinReadyInVain() const {
  return plan_.misses_capacity() && IsMinReady() && !nodes_.is_launching();
}

// The pool is notified only of what is new: after every change of what a request waits for, the others plan
// again.
void RequestRun::ShowWaiting(bool is_waiting) {
  Ledger::Awaited awaited;
  if (is_waiting) {
    awaited.turns = plan_.turns_awaited;
    for (const auto& [resource, amount] : plan_.provider_shortage) awaited.resources.insert(resource);
  }
  context_.ledger.Await(pool_.key().provider, order_, std::move(awaited));
  const sched::FillPlan* shown = waits_for();
  if (!is_waiting) {
    if (shown != nullptr) pool_.EndWaiting(order_);
    return;
  }
  bool is_same = shown != nullptr && plan_.wait == shown->wait &&
                 plan_.pool_shortage == shown->pool_shortage &&
                 plan_.provider_shortage == shown->provider_shortage;
  if (is_same) return;
  if (shown == nullptr) {
    std::string resource = plan_.MissingResource();
    logger_.Info("Waiting for {}{}", plan_.misses_capacity() ? "capacity" : "other launches to end",
                 resource.empty() ? "" : ": not enough " + resource);
  }
  WaitingRequest waiting{plan_, seen_.record.reuse, &nodes_.rejected(), &changed_};
  pool_.SetWaiting(order_, std::move(waiting));
}

}  // namespace nodepool::launcher
