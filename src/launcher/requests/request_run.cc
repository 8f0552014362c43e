#include "launcher/requests/request_run.h"

#include "async/deadline.h"
#include "async/task.h"
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

bool RequestRun::IsDeadlocked() {
  SteadyTime now = context_.loop.SteadyNow();
  std::ptrdiff_t ready = nodes_.ready_count();
  if (std::exchange(progress_.ready, ready) != ready) progress_.since = now;
  progress_.is_launching = nodes_.is_launching();
  sched::GiveWay decision = DecideGiveWay(plan_, progress_, context_.intervals.yield_after, now,
                                          [this] { return EarlierRequestIsHeldUp(); });
  if (decision.is_due) logger_.Info("An earlier request waits as well: giving way to it");
  if (decision.ask_at) WakeAt(*decision.ask_at);
  return decision.is_due;
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

// How a request ends: fulfilled, declined or given back (launcher.md 9, 11).

Task<> RequestRun::Fulfil() {
  // nodes[i] is a node for node_types[i] (launcher.md 11, step 8).
  std::vector<NodeId> nodes = nodes_.InOrder(request_->record().node_types);
  WallTime now = context_.loop.Now();
  auto fulfil = [now, nodes](NodeRequest& request) {
    request.SetState(RequestState::kFulfilled, now);
    request.nodes = nodes;
    return Change::kWrite;
  };
  bool is_done = co_await request_->Fulfil(nodes_.Locked(), fulfil);
  if (!is_done) co_return co_await RequestIsGone();
  logger_.Info("Fulfilled with {}", fmt::join(nodes, ","));
  nodes_.HandedOver();
  request_.reset();
}

Task<> RequestRun::RequestIsGone() {
  logger_.Info("The request was deleted by its client; its nodes are free again");
  co_await nodes_.Release(id());
  co_await request_->Unlock();
  request_.reset();
}

Task<> RequestRun::Decline(std::string reason) {
  logger_.Info("Declining: {}", reason);
  co_await nodes_.Release(id());
  std::vector<sched::Decliner> self{pool_.DeclineFor(reason)};
  WallTime now = context_.loop.Now();
  const sched::Registry* registry = &pool_.cluster().registry;
  auto decline = [self, now, registry](NodeRequest& request) {
    sched::Decline(request, self, *registry, now);
    return Change::kWrite;
  };
  co_await request_->UpdateAndUnlock(decline);
  request_.reset();
}

Task<> RequestRun::GiveBack() {
  co_await nodes_.Release(id());
  WallTime now = context_.loop.Now();
  auto give_back = [now](NodeRequest& request) {
    if (request.state != RequestState::kPending) return Change::kSkip;
    request.SetState(RequestState::kRequested, now);
    return Change::kWrite;
  };
  co_await request_->UpdateAndUnlock(give_back);
  logger_.Info("Given back");
  request_.reset();
}

// Ends the run of a request when serving it has failed or was cancelled.
Task<> RequestRun::LetGo(const Failure& failure) {
  co_await nodes_.Stop();
  if (!request_) co_return;
  if (failure.verdict() == Verdict::kLostSession || !request_->is_held()) {
    logger_.Warning("Dropped: the ZooKeeper session that held the request's lock is over");
    co_return;
  }
  Task<> end = failure.verdict() == Verdict::kCancelled ? GiveBack() : Decline(failure.message());
  Outcome<> let_go = co_await Attempt(std::move(end));
  if (!let_go) logger_.Error("The request could not be given back: {}", let_go.error().message());
}

namespace {

LauncherId NewLauncherId(Random& random, const std::string& fqdn, const ProviderName& provider,
                         const PoolName& pool) {
  return LauncherId(fmt::format("{}-PoolWorker.{}-{}-{}", fqdn, provider, pool, random.UuidHex()));
}

}  // namespace

PoolWorker::PoolWorker(Context& context, const ProviderManager& providers, const ClusterView& cluster,
                       std::shared_ptr<const driver::ProviderConfig> provider_config,
                       std::shared_ptr<const driver::PoolConfig> config, const std::string& fqdn)
    : context_(context),
      pool_(context, providers, cluster, provider_config, config,
            NewLauncherId(context.random, fqdn, provider_config->name, config->name)),
      unused_nodes_(context, pool_),
      logger_(fmt::format("nodepool.PoolWorker.{}-{}", key().provider, key().pool)),
      tasks_(context.loop, logger_) {}

PoolWorker::~PoolWorker() = default;

Task<> PoolWorker::Start() {
  logger_.Info("Starting PoolWorker.{}-{}", key().provider, key().pool);
  co_await pool_.Announce();
  is_started_ = true;
}

Task<> PoolWorker::Stop() {
  co_await tasks_.Stop();
  co_await unused_nodes_.Stop();
  co_await pool_.Withdraw();
}

Task<> PoolWorker::Drain() {
  logger_.Info("The pool is not configured any more: finishing what runs, giving the rest back");
  for (const auto& [id, run] : runs_) run->Drain();
  co_await pool_.Withdraw();
  co_await tasks_.Join();
  co_await unused_nodes_.Join();
}

void PoolWorker::Configure(std::shared_ptr<const driver::ProviderConfig> provider_config,
                           std::shared_ptr<const driver::PoolConfig> config) {
  pool_.Configure(std::move(provider_config), std::move(config));
  ProviderChanged();
}

void PoolWorker::SessionLost() {
  tasks_.CancelAll();
  unused_nodes_.CancelAll();
}

void PoolWorker::Accept(store::StoredRequest request, sched::ServiceOrder order, sched::Standing standing,
                        std::function<void()> ended) {
  RequestId id = request.id;
  bool is_probe = standing == sched::Standing::kMayProbe;
  auto run = std::make_shared<RequestRun>(context_, pool_, unused_nodes_, std::move(request),
                                          std::move(order), is_probe);
  runs_[id] = run;
  tasks_.Spawn("handle request", log::OfRequest(id), RunToEnd(run, std::move(ended)));
}

Task<> PoolWorker::RunToEnd(std::shared_ptr<RequestRun> run, std::function<void()> ended) {
  ScopeExit end([&] {
    // After a lost session the request may have been accepted again already.
    auto known = runs_.find(run->id());
    if (known != runs_.end() && known->second == run) runs_.erase(known);
    ended();
  });
  co_await run->Run();
}

void PoolWorker::ProviderChanged() {
  for (const auto& [id, run] : runs_) run->Wake();
}

void PoolWorker::RequestGone(const RequestId& id) {
  if (auto run = runs_.find(id); run != runs_.end()) run->second->RequestGone();
}

const RequestRun* PoolWorker::FindRun(const RequestId& id) const {
  auto run = runs_.find(id);
  return run == runs_.end() ? nullptr : run->second.get();
}

}  // namespace nodepool::launcher
