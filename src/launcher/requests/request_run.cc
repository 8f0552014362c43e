#include "launcher/requests/request_run.h"

#include "async/cleanup.h"
#include "async/deadline.h"
#include "base/scope_exit.h"
#include "launcher/requests/wait_reasons.h"

namespace nodepool::launcher {

using store::Change;

RequestRun::RequestRun(Context& context, Pool& pool, UnusedNodes& unused_nodes, store::StoredRequest seen,
                       sched::ServiceOrder order, bool is_probe)
    : context_(context),
      pool_(pool),
      unused_nodes_(unused_nodes),
      seen_(std::move(seen)),
      order_(std::move(order)),
      logger_(log::Logger(fmt::format("nodepool.driver.NodeRequestHandler[{}-{}]", pool.key().provider,
                                      pool.key().pool))
                  .About({seen_.record.event_id.value_or(""), seen_.id.value, ""})),
      nodes_(context, pool, changed_, logger_),
      refusals_(context.random),
      is_probe_(is_probe) {}

void RequestRun::RequestGone() {
  is_gone_ = true;
  changed_.Set();
}

void RequestRun::Drain() {
  is_draining_ = true;
  changed_.Set();
}

const sched::FillPlan* RequestRun::waits_for() const {
  const WaitingRequest* waiting = pool_.waiting().Find(order_);
  return waiting == nullptr ? nullptr : &waiting->plan;
}

Task<> RequestRun::Run() {
  auto let_go = [this](const Failure& failure) { return LetGo(failure); };
  Outcome<> served = co_await Attempt(OnFailure(Serve(), let_go));
  if (!served) co_return;
  auto stop = [this] { return nodes_.Stop(); };
  // It fails when the session is over: nothing is decided then before the cache is filled again.
  co_await Attempt(WithCleanup(nodes_.AwaitInCache(), stop));
}

Task<> RequestRun::Serve() {
  co_await Accept();
  if (!request_) co_return;
  ScopeExit ended([this] {
    ShowWaiting(false);
    nodes_.ReleaseReservations();
  });
  while (true) {
    changed_.Reset();
    due_ = SteadyTime::max();
    bool is_over = co_await Step();
    if (is_over) co_return;
    co_await NextChange();
  }
}

Task<> RequestRun::NextChange() {
  if (changed_.is_set()) co_return;
  if (due_ == SteadyTime::max()) co_return co_await changed_.Wait();
  co_await EndsBy(context_.loop, due_, "capacity or nodes", changed_.Wait());
}

// A request that only free nodes can serve stays `requested` until it has one: another launcher may be faster
// (D-25).
Task<> RequestRun::Accept() {
  WallTime now = context_.loop.Now();
  LauncherId self = pool_.launcher_id();
  auto accept = [now, self](NodeRequest& request) {
    if (request.state != RequestState::kRequested || request.WasDeclinedBy(self)) return Change::kSkip;
    request.SetState(RequestState::kPending, now);
    return Change::kWrite;
  };
  std::shared_ptr<driver::Provider> provider = pool_.provider();
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
               pool_.key().pool, pool_.key().provider);
}

Task<bool> RequestRun::Step() {
  std::optional<Refusals::Refusal> refused = co_await nodes_.DropRefused();
  if (refused) NoteRefusal(std::move(*refused));
  if (nodes_.IsComplete(request_->record().node_types)) {
    co_await Fulfil();
    co_return true;
  }
  sched::Decision decision = pool_.StillAcceptable(request_->record());
  bool is_wanted = !is_gone_ && !is_draining_ && !nodes_.is_launching() && !nodes_.AnyFailed();
  if (is_wanted && pool_.MayHavePassed(request_->record(), decision)) {
    std::shared_ptr<driver::Provider> provider = pool_.provider();
    Outcome<> looked = co_await Attempt(provider->LookAgain());
    decision = pool_.StillAcceptable(request_->record());
    if (!looked) {
      WakeAt(context_.loop.SteadyNow() + context_.intervals.provider_probe);
      co_return false;
    }
  }
  if (!nodes_.is_launching()) {
    bool is_over = co_await GiveUpIfPointless(decision);
    if (is_over) co_return true;
  }
  if (is_gone_ || is_draining_ || given_up_ || nodes_.AnyFailed()) co_return false;
  if (sched::IsProviderFault(decision.reason)) {
    WakeAt(context_.loop.SteadyNow() + context_.intervals.provider_probe);
    co_return false;
  }
  if (decision.kind != sched::Decision::Kind::kAccept || !FollowProvider()) co_return false;
  if (IsLeftByBreaker()) {
    logger_.Info("Launches fail in this pool, and another one can take the request");
    co_await GiveBack();
    co_return true;
  }
  Plan();
  if (IsHopelessMinReady()) {
    co_await Decline(ReasonOf(pool_.ViewFor(order_), plan_).text);
    co_return true;
  }
  bool lacks_free_nodes = !plan_.wait.empty() && !pool_.launches_nodes();
  if (lacks_free_nodes || IsDeadlocked()) {
    co_await GiveBack();
    co_return true;
  }
  // After a reuse, plan again: the node is either taken or rejected.
  if (!plan_.reuse.empty()) changed_.Set();
  std::vector<sched::FillPlan::Reuse> reuses = plan_.reuse;
  for (const sched::FillPlan::Reuse& reuse : reuses) co_await nodes_.Reuse(reuse, driver_, *request_);
  co_return false;
}

// Returns whether the request was given up; nothing is being launched for it.
Task<bool> RequestRun::GiveUpIfPointless(sched::Decision decision) {
  if (is_gone_) {
    co_await RequestIsGone();
  } else if (nodes_.AnyFailed() && !is_probe_ && pool_.IsLeftByBreaker(request_->record())) {
    logger_.Info("Launches fail in this pool, and another one can take the request: {}", nodes_.LastFault());
    co_await GiveBack();
  } else if (nodes_.AnyFailed()) {
    co_await Decline(nodes_.LastFault());
  } else if (given_up_) {
    co_await Decline(*given_up_);
  } else if (is_draining_) {
    co_await GiveBack();
  } else if (decision.kind == sched::Decision::Kind::kDecline) {
    co_await Decline(pool_.WhyDeclined(request_->record(), decision));
  } else {
    co_return false;
  }
  co_return true;
}

// A replaced provider only finishes what it has begun; its successor launches what is missing
// (launcher.md 4.3). False: no provider is running now.
bool RequestRun::FollowProvider() {
  std::shared_ptr<driver::Provider> provider = pool_.provider();
  if (!provider) return false;
  if (driver_ && driver_->provider == provider) return true;
  driver_ = std::make_shared<DriverSide>();
  driver_->provider = provider;
  driver_->handler = provider->RequestHandler(pool_.config(), seen_);
  nodes_.Announce(*driver_);
  return true;
}

// What has begun is finished, whatever the breaker says.
bool RequestRun::IsLeftByBreaker() const {
  return !is_probe_ && nodes_.empty() && pool_.IsLeftByBreaker(request_->record());
}

// An earlier request, perhaps of another launcher, may wait for capacity that the nodes of this one use. The
// later request gives way if it holds nodes and has waited in vain for a while.
bool RequestRun::IsDeadlocked() {
  SteadyTime now = context_.loop.SteadyNow();
  std::ptrdiff_t ready = nodes_.ready_count();
  if (std::exchange(ready_, ready) != ready) progress_at_ = now;
  if (!plan_.misses_capacity() || ready == 0 || nodes_.is_launching()) return false;
  SteadyTime yield_at = progress_at_ + context_.intervals.yield_after;
  if (now >= yield_at && EarlierRequestIsHeldUp()) {
    logger_.Info("An earlier request waits as well: giving way to it");
    return true;
  }
  WakeAt(now < yield_at ? yield_at : now + context_.intervals.yield_after);
  return false;
}

// A request of another launcher is known to wait here only if it holds nodes of this provider.
bool RequestRun::EarlierRequestIsHeldUp() const {
  sched::PoolView view = pool_.ViewFor(order_);
  bool is_reserved =
      !view.pool.reserved.empty() || !view.provider.reserved.empty() || !view.refused_labels.empty();
  if (is_reserved) return true;
  for (const RequestId& other : context_.caches.requests.InState(RequestState::kPending)) {
    auto order = sched::OrderOf(other, context_.caches.requests.Find(other)->record);
    if (!order || !(*order < order_)) continue;
    for (const NodeId& node : context_.caches.nodes.OfRequest(other)) {
      if (context_.caches.nodes.Find(node)->record.provider == pool_.key().provider) return true;
    }
  }
  return false;
}

}  // namespace nodepool::launcher
