#include "launcher/handler.h"

#include <algorithm>

#include "base/text.h"
#include "store/repeat.h"

namespace nodepool::launcher {

using store::Change;

namespace {

Task<bool> CatchUp(store::NodeCache& nodes) {
  co_await nodes.CatchUp();
  co_return true;
}

}  // namespace

Handler::Handler(Context& context, Ledger& ledger, HandlerHost& host, store::StoredRequest seen,
                 sched::ServiceOrder order)
    : context_(context),
      ledger_(ledger),
      host_(host),
      seen_(std::move(seen)),
      order_(std::move(order)),
      logger_(log::Logger("nodepool.driver.NodeRequestHandler[" + host.launcher_id().value + "]")
                  .About({seen_.record.event_id.value_or(""), seen_.id.value, ""})),
      refusal_backoff_({std::chrono::seconds(1), std::chrono::seconds(10)}, context.random),
      launches_(context.loop, logger_),
      timers_(context.loop, logger_) {}

Handler::~Handler() = default;

void Handler::RequestGone() {
  is_gone_ = true;
  changed_.Set();
}

void Handler::Drain() {
  is_draining_ = true;
  changed_.Set();
}

Task<> Handler::Run() {
  std::exception_ptr error;
  try {
    co_await Serve();
  } catch (...) {
    error = std::current_exception();
  }
  SetWaiting(false);
  FreeKept();
  try {
    if (!error) co_await UntilNodesAreShown();
  } catch (...) {
    // We are told to stop, or the session is over: nothing is decided before the cache has begun anew.
  }
  co_await IgnoreCancellation();
  co_await timers_.Stop();
  co_await launches_.Stop();
  for (Ledger::EntryId entry : entries_) ledger_.Release(entry);
  if (!error || !request_) co_return;
  if (VerdictOf(error) == Verdict::kLostSession || !request_->is_held()) {
    logger_.Warning("Dropped: the ZooKeeper session that held the request's lock is over");
    co_return;
  }
  std::exception_ptr second;
  try {
    if (VerdictOf(error) == Verdict::kCancelled) {
      co_await GiveBack();
    } else {
      co_await Decline(MessageOf(error));
    }
  } catch (...) {
    second = std::current_exception();
  }
  if (second) logger_.Error("The request could not be given back: {}", MessageOf(second));
}

// A node counts from the decision on, also while no cache shows it, whatever has become of it.
Task<> Handler::UntilNodesAreShown() {
  auto is_pending = [this](Ledger::EntryId entry) { return ledger_.IsPending(entry); };
  if (std::ranges::none_of(entries_, is_pending)) co_return;
  co_await CatchUpWithNodes();
  // Those that are left were removed before the cache could show them.
  bool is_freed = std::ranges::any_of(entries_, is_pending);
  for (Ledger::EntryId entry : entries_) ledger_.Release(entry);
  if (is_freed) host_.CapacityFreed();
}

Task<> Handler::CatchUpWithNodes() {
  std::function<Task<bool>()> catch_up = [this] { return CatchUp(context_.nodes); };
  co_await store::Repeat<bool>(context_.loop, context_.random, catch_up);
}

// A request that only free nodes can serve stays `requested` until it has one: another launcher may be
// quicker (D-25).
Task<> Handler::Accept() {
  WallTime now = context_.loop.Now();
  LauncherId self = host_.launcher_id();
  auto accept = [now, self](NodeRequest& request) {
    if (request.state != RequestState::kRequested || request.WasDeclinedBy(self)) return Change::kSkip;
    request.SetState(RequestState::kPending, now);
    return Change::kWrite;
  };
  std::shared_ptr<driver::Provider> provider = host_.provider();
  if (!provider || provider->launches_nodes()) {
    auto accepted = co_await context_.store.requests.Accept(seen_, accept);
    if (!accepted) co_return;
    request_.emplace(std::move(*accepted));
  } else {
    auto locked = co_await context_.store.requests.TryLock(id());
    if (!locked) co_return;
    NodeRequest copy = locked->record();
    if (accept(copy) == Change::kSkip) co_return co_await locked->Unlock();
    request_.emplace(std::move(*locked));
  }
  logger_.Info("Accepted for {} in pool {} of provider {}", fmt::join(request_->record().node_types, ","),
               host_.key().pool, host_.key().provider);
}

Task<> Handler::Serve() {
  co_await Accept();
  while (request_) {
    changed_.Reset();
    co_await DropAborted();
    if (IsComplete()) co_return co_await Fulfil();
    sched::Decision decision = host_.StillAcceptable(request_->record());
    bool is_settled = launches_.size() == 0;
    if (is_settled) {
      bool is_over = co_await GiveUpIfPointless(decision);
      if (is_over) co_return;
    }
    bool may_plan = !is_gone_ && !is_draining_ && !AnyFailed();
    if (may_plan && decision.reason == sched::Reason::kProviderFault) {
      ProbeLater();
    } else if (may_plan && decision.kind == sched::Decision::Kind::kAccept && FollowProvider()) {
      PlanNext();
      if (IsMinReadyInVain()) co_return co_await Decline("no capacity for a min-ready node");
      if (!plan_.wait.empty() && !host_.launches_nodes()) co_return co_await GiveBack();
      if (IsDeadlocked()) co_return co_await GiveBack();
      std::vector<sched::FillPlan::Reuse> reuses = plan_.reuse;
      for (const sched::FillPlan::Reuse& reuse : reuses) co_await TryReuse(reuse);
      if (changed_.is_set()) continue;
    }
    co_await changed_.Wait();
  }
}

// One look at a time, however often something wakes us meanwhile.
void Handler::ProbeLater() {
  SteadyTime now = context_.loop.SteadyNow();
  if (now < probe_at_) return;
  probe_at_ = now + context_.intervals.provider_probe;
  timers_.Spawn("ask the provider again", logger_.ids(), WakeAt(probe_at_));
}

// Whether the request, of which nothing is being launched, was let go.
Task<bool> Handler::GiveUpIfPointless(sched::Decision decision) {
  if (is_gone_) {
    logger_.Info("The request was deleted by its client; its nodes are free again");
    co_await ReleaseNodes();
    co_await request_->Unlock();
  } else if (AnyFailed()) {
    co_await Decline("a node failed to launch");
  } else if (is_draining_) {
    co_await GiveBack();
  } else if (decision.kind == sched::Decision::Kind::kDecline) {
    co_await Decline(std::string(ToString(decision.reason)));
  } else {
    co_return false;
  }
  co_return true;
}

// A provider that was replaced only finishes what it has begun; its successor goes on
// with what is missing (launcher.md 4.3). False: none is running now.
bool Handler::FollowProvider() {
  std::shared_ptr<driver::Provider> provider = host_.provider();
  if (!provider) return false;
  if (driver_ && driver_->provider == provider) return true;
  auto driver = std::make_shared<DriverSide>();
  driver->provider = provider;
  driver->handler = provider->RequestHandler(host_.pool_config(), seen_);
  for (const auto& slot : slots_) {
    if (slot->node) driver->handler->NodeReused(slot->node->record());
  }
  driver_ = std::move(driver);
  return true;
}

// An earlier request, perhaps of another launcher, may wait for what the nodes of this one
// take up. The later one gives way: it holds nodes and has waited in vain for a while.
bool Handler::IsDeadlocked() {
  SteadyTime now = context_.loop.SteadyNow();
  auto ready = std::count_if(slots_.begin(), slots_.end(),
                             [](const auto& slot) { return slot->state == Slot::State::kReady; });
  if (std::exchange(ready_, ready) != ready) progress_at_ = now;
  if (!plan_.misses_capacity() || ready == 0 || launches_.size() > 0) return false;
  if (now >= progress_at_ + context_.intervals.yield_after && EarlierRequestIsHeldUp()) {
    logger_.Info("An earlier request waits as well: making way for it");
    return true;
  }
  if (now < yield_at_) return false;
  yield_at_ = now + context_.intervals.yield_after;
  timers_.Spawn("make way", logger_.ids(), WakeAt(yield_at_));
  return false;
}

// Of requests of other launchers it shows only when they hold nodes in this provider.
bool Handler::EarlierRequestIsHeldUp() const {
  sched::PoolView view = host_.ViewFor(order_);
  if (!view.pool.reserved.empty() || !view.provider.reserved.empty()) return true;
  for (const RequestId& other : context_.requests.InState(RequestState::kPending)) {
    auto order = sched::OrderOf(other, context_.requests.Find(other)->record);
    if (!order || !(*order < order_)) continue;
    for (const NodeId& node : context_.nodes.OfRequest(other)) {
      if (context_.nodes.Find(node)->record.provider == host_.key().provider) return true;
    }
  }
  return false;
}

// Decides about everything still missing, at once and without awaiting, so that no
// other decision comes in between; launches are under way when it returns.
void Handler::PlanNext() {
  std::vector<LabelName> satisfied;
  for (const auto& slot : slots_) satisfied.push_back(slot->label);
  std::vector<LabelName> missing = sched::MissingLabels(request_->record().node_types, satisfied);
  std::erase_if(rejected_, [this](const auto& entry) { return !IsRejected(entry.first); });
  std::set<NodeId> excluded;
  for (const auto& [node, until] : rejected_) excluded.insert(node);
  std::size_t kept = FreeKept();
  sched::PoolView view = host_.ViewFor(order_);
  plan_ = sched::PlanFill(view, missing, request_->record().reuse, excluded);
  bool is_pausing = refused_until_ && context_.loop.SteadyNow() < *refused_until_;
  if (is_pausing && !plan_.launch.empty()) {
    plan_.is_refused = true;
    // The cloud has just refused; what it lacks is unknown, so everything counts.
    plan_.wait.insert(plan_.wait.begin(), plan_.launch.begin(), plan_.launch.end());
    plan_.provider_shortage = view.labels.at(plan_.launch.front()).need;
    plan_.launch.clear();
  }
  for (const sched::FillPlan::Reuse& reuse : plan_.reuse) {
    claims_.emplace(reuse.node, ledger_.Claim(reuse.node));
  }
  // Reused nodes decide the zone of those that are launched, and take their time: what others do
  // meanwhile is looked at then.
  if (!plan_.reuse.empty()) {
    KeepForLaunches(view);
  } else {
    for (const LabelName& label : plan_.launch) StartLaunch(label, view.labels.at(label).need);
  }
  if (plan_.launch.size() < kept) host_.CapacityFreed();
  if (refusals_ > 0 && launches_.size() > 0) plan_.is_refused = true;
  SetWaiting((plan_.is_refused || !plan_.wait.empty()) && !IsMinReadyInVain());
  // Nobody has to go for a min-ready node (launcher.md 10.4).
  bool may_displace = request_->record().requestor != kMinReadyRequestor;
  constexpr int kOftenRefused = 3;  // then what we keep unused may be the reason
  bool is_known = !is_pausing || refusals_ >= kOftenRefused;
  bool is_missing = !plan_.MissingResource().empty();
  if (is_missing && is_known && may_displace) host_.MakeRoom(plan_);
}

void Handler::KeepForLaunches(const sched::PoolView& view) {
  for (const LabelName& label : plan_.launch) {
    kept_.push_back(ledger_.Commit(host_.key(), view.labels.at(label).need));
    ledger_.BeginLaunch(host_.key().provider);
  }
}

std::size_t Handler::FreeKept() {
  for (Ledger::EntryId entry : kept_) {
    ledger_.Release(entry);
    ledger_.EndLaunch(host_.key().provider);
  }
  return std::exchange(kept_, {}).size();
}

// It waits for nothing, and keeps nothing from others (D-27).
bool Handler::IsMinReadyInVain() const {
  return plan_.misses_capacity() && request_->record().requestor == kMinReadyRequestor &&
         launches_.size() == 0;
}

std::vector<LabelName> Handler::LabelsToReuse() const {
  return seen_.record.reuse ? announced_.wait : std::vector<LabelName>();
}

Task<> Handler::WakeAt(SteadyTime when) {
  co_await context_.loop.SleepUntil(when);
  changed_.Set();
}

bool Handler::AnyFailed() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const auto& slot) { return slot->state == Slot::State::kFailed; });
}

bool Handler::IsComplete() const {
  return slots_.size() == request_->record().node_types.size() &&
         std::all_of(slots_.begin(), slots_.end(),
                     [](const auto& slot) { return slot->state == Slot::State::kReady; });
}

// Tells the pool only of what is new: every change of what somebody waits for makes
// the others look again.
void Handler::SetWaiting(bool is_waiting) {
  Ledger::Awaited awaited;
  if (is_waiting) {
    awaited.turns = plan_.turns_awaited;
    for (const auto& [resource, amount] : plan_.provider_shortage) awaited.resources.insert(resource);
  }
  ledger_.Await(host_.key().provider, order_, std::move(awaited));
  bool is_same = plan_.wait == announced_.wait && plan_.pool_shortage == announced_.pool_shortage &&
                 plan_.provider_shortage == announced_.provider_shortage;
  if (is_waiting == is_waiting_ && (is_same || !is_waiting)) return;
  if (!is_waiting_) {
    std::string resource = plan_.MissingResource();
    logger_.Info("Waiting for {}{}", plan_.misses_capacity() ? "capacity" : "other launches to end",
                 resource.empty() ? "" : ": not enough " + resource);
  }
  is_waiting_ = is_waiting;
  announced_ = plan_;
  host_.WaitingChanged(*this);
}

}  // namespace nodepool::launcher
