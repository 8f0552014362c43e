#include "launcher/requests/request_run.h"

// How a request decides about the nodes that it lacks, and what it waits for.

namespace nodepool::launcher {
namespace {

constexpr int kSparedFor = 12;  // times the pause between two deletions

}  // namespace

// Decides about everything still missing, without awaiting, so that no other decision intervenes; launches
// are under way when it returns.
void RequestRun::Plan() {
  const NodeRequest& request = request_->record();
  std::set<NodeId> rejected = nodes_.rejected().Current();
  WakeAt(nodes_.rejected().NextEnd());
  // Before the view, which would count them against this request itself.
  std::size_t reserved = nodes_.ReleaseReservations();
  sched::PoolView view = pool_.ViewFor(order_);
  plan_ = sched::PlanFill(view, nodes_.Missing(request.node_types), request.reuse, rejected);
  PauseAfterRefusal(view);
  AskWhatOthersUse(view);
  CarryOut(view);
  // Other requests may have what was reserved and is not needed any more.
  if (plan_.launch.size() < reserved) context_.ledger.CapacityChanged(pool_.key().provider);
  if (refusals_.count() > 0 && nodes_.is_launching()) MarkRefused();
  ShowWaiting((plan_.is_refused || !plan_.wait.empty()) && !IsHopelessMinReady());
  DeleteUnusedNodes();
}

// Lack of capacity is waited for like quota, unless another pool may have it, and for as long as one launch
// may take (launcher.md 15.3).
void RequestRun::NoteRefusal(Refusals::Refusal refusal) {
  SteadyTime now = context_.loop.SteadyNow();
  std::string why = refusal.lacks_capacity ? refusal.why : "";
  refusals_.Add(std::move(refusal), now);
  if (freed_ && freed_->has_tried) {
    ++deletions_in_vain_;
    if (freed_->are_all) {
      // Unused nodes are not the reason. Others may be made in the place of used ones, so it is tried again.
      spares_unused_ = now + kSparedFor * context_.intervals.make_room_holdoff;
      deletions_in_vain_ = 0;
    }
    freed_.reset();
  }
  if (why.empty()) return;
  bool is_over = now - *refusals_.lacks_capacity_since() >= pool_.provider_config().launch_timeout;
  if (is_over) {
    given_up_ = why + "; it was waited for until launch-timeout was over";
  } else if (OthersCanServe()) {
    given_up_ = why + "; another pool may have it";
  }
}

bool RequestRun::OthersCanServe() const {
  std::vector<const sched::RegisteredPool*> candidates =
      pool_.cluster().registry.Candidates(request_->record());
  // Another launcher's worker of this pool, perhaps one that has just died, finds the same cloud.
  auto is_this_pool = [key = pool_.key()](const sched::RegisteredPool& other) {
    return other.provider == key.provider && (other.name.value.empty() || other.name == key.pool);
  };
  return std::ranges::any_of(candidates, [&](const sched::RegisteredPool* other) {
    bool is_usable = !other->is_failing && context_.caches.pauses.Find(other->provider) == nullptr;
    return is_usable && !is_this_pool(*other);
  });
}

// The cloud has just refused: what it refused counts as missing until the next try has ended.
void RequestRun::PauseAfterRefusal(const sched::PoolView& view) {
  TryWithFreedNodes();
  if (!refusals_.IsPausing(context_.loop.SteadyNow())) return;
  WakeAt(refusals_.pause_until());
  if (plan_.launch.empty()) return;
  const Resources& need = view.labels.at(plan_.launch.front()).need;
  plan_.wait.insert(plan_.wait.begin(), plan_.launch.begin(), plan_.launch.end());
  plan_.launch.clear();
  const std::set<std::string>& named = refusals_.what().resources;
  for (const auto& [resource, amount] : need) {
    if (named.contains(resource)) plan_.provider_shortage[resource] = amount;
    if (named.contains(resource) || named.empty()) plan_.may_be_short[resource] = amount;
  }
  MarkRefused();
}

void RequestRun::MarkRefused() {
  plan_.is_refused = true;
  plan_.refused = refusals_.what();
}

// As soon as the nodes are gone.
void RequestRun::TryWithFreedNodes() {
  if (freed_ && context_.loop.SteadyNow() >= freed_->until) freed_.reset();
  if (!freed_) return;
  plan_.kept = freed_->resources;
  WakeAt(freed_->until);
  if (freed_->has_tried || !AreGone(freed_->nodes)) return;
  refusals_.EndPause();
  freed_->has_tried = !plan_.launch.empty();
}

bool RequestRun::AreGone(const std::vector<NodeId>& nodes) const {
  return std::ranges::none_of(nodes, [this](const NodeId& id) {
    const store::StoredNode* node = context_.caches.nodes.Find(id);
    bool is_deleting = node != nullptr && node->record.state == NodeState::kDeleting;
    return is_deleting || context_.ledger.IsClaimed(id);
  });
}

// Nobody tells when others free what they use of the cloud.
void RequestRun::AskWhatOthersUse(const sched::PoolView& view) {
  bool waits_for_others = std::ranges::any_of(plan_.provider_shortage, [&](const auto& shortage) {
    auto others = view.provider.others.find(shortage.first);
    return others != view.provider.others.end() && others->second > 0;
  });
  SteadyTime now = context_.loop.SteadyNow();
  if (!waits_for_others) {
    ask_at_ = SteadyTime::max();
    return;
  }
  if (now >= ask_at_) driver_->provider->InvalidateQuota();
  if (now >= ask_at_ || ask_at_ == SteadyTime::max()) ask_at_ = now + context_.intervals.quota_probe;
  WakeAt(ask_at_);
}

// Reused nodes decide the zone of those that are launched, and locking them takes time: the launches wait for
// them, and are then planned again.
void RequestRun::CarryOut(const sched::PoolView& view) {
  nodes_.Claim(plan_.reuse);
  for (const LabelName& label : plan_.launch) {
    const Resources& need = view.labels.at(label).need;
    if (plan_.reuse.empty()) {
      nodes_.Launch(NewNode(label), need, driver_);
    } else {
      nodes_.Reserve(need);
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
  constexpr int kOftenRefused = 3;  // from then on our unused nodes may be the reason
  bool is_known = !refusals_.IsPausing(context_.loop.SteadyNow()) || refusals_.count() >= kOftenRefused;
  // No node is deleted for a min-ready one (launcher.md 10.4).
  if (plan_.Missing().empty() || !is_known || IsMinReady()) return;
  if (plan_.is_refused && context_.loop.SteadyNow() < spares_unused_) return WakeAt(spares_unused_);
  // Twice as many after each deletion in vain, since others take what it gave back.
  std::size_t after_refusal = std::size_t{1} << std::min(deletions_in_vain_, 16);
  UnusedNodes::Deletion deletion = unused_nodes_.DeleteFor(plan_, after_refusal);
  if (deletion.again_at) WakeAt(*deletion.again_at);
  if (deletion.nodes.empty() || !plan_.is_refused) return;
  freed_.emplace(std::move(deletion.nodes), std::set<std::string>(),
                 context_.loop.SteadyNow() + context_.intervals.make_room_holdoff, deletion.are_all);
  for (const auto& [resource, amount] : plan_.may_be_short) freed_->resources.insert(resource);
  changed_.Set();  // the next plan keeps them
}

bool RequestRun::IsMinReady() const { return seen_.record.requestor == kMinReadyRequestor; }

// Such a request does not wait, and reserves nothing (D-27).
bool RequestRun::IsHopelessMinReady() const {
  return plan_.misses_capacity() && IsMinReady() && !nodes_.is_launching();
}

// Notifies the pool only of changes: each makes the other requests plan again.
void RequestRun::ShowWaiting(bool is_waiting) {
  Ledger::Awaited awaited;
  if (is_waiting) {
    awaited.turns = plan_.turns_awaited;
    for (const auto& [resource, amount] : plan_.provider_shortage) awaited.resources.insert(resource);
    awaited.resources.insert(plan_.refused.resources.begin(), plan_.refused.resources.end());
    awaited.resources.insert(plan_.kept.begin(), plan_.kept.end());
    if (plan_.is_refused) awaited.labels = plan_.refused.labels;
  }
  context_.ledger.Await(pool_.key().provider, order_, std::move(awaited));
  const sched::FillPlan* shown = waits_for();
  if (!is_waiting) {
    if (shown != nullptr) pool_.EndWaiting(order_);
    return;
  }
  bool is_same = shown != nullptr && plan_.wait == shown->wait &&
                 plan_.pool_shortage == shown->pool_shortage &&
                 plan_.provider_shortage == shown->provider_shortage && plan_.refused == shown->refused &&
                 plan_.kept == shown->kept;
  if (is_same) return;
  if (shown == nullptr) {
    std::string missing = plan_.Missing();
    logger_.Info("Waiting for {}{}", plan_.misses_capacity() ? "capacity" : "other launches to end",
                 missing.empty() ? "" : ": not enough " + missing);
  }
  WaitingRequest waiting{plan_, seen_.record.reuse, &nodes_.rejected(), &changed_};
  pool_.SetWaiting(order_, std::move(waiting));
}

}  // namespace nodepool::launcher
