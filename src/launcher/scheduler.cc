#include "launcher/scheduler.h"

#include <algorithm>
#include <utility>

#include "async/task.h"

namespace nodepool::launcher {
namespace {

// Between two checks of a cache that lags.
constexpr Duration kMaxRecheckPause = std::chrono::seconds(8);

// After a long decision, for so many times what it took, further changes are collected for the next one: with
// many pools and many shapes of requests a decision takes milliseconds, and a request causes several.
constexpr Duration kLongDecision = std::chrono::milliseconds(1);
constexpr int kPausePerDecision = 3;
constexpr Duration kMaxDecisionPause = std::chrono::milliseconds(100);

// One portion of a decision, some 20 ms: while less than thousands of shapes of requests wait, all of it.
// What changes between two portions counts for the requests behind; for the others, in the next decision.
constexpr std::size_t kPortion = 50'000;

// Whether a change of a node can affect what can be handed out or launched.
bool ChangesCapacity(const store::StoredNode* before, const store::StoredNode* after) {
  if (before == nullptr || after == nullptr) return true;
  bool was_available = before->record.is_free() && !before->is_locked();
  bool is_available = after->record.is_free() && !after->is_locked();
  return was_available != is_available || before->record.resources != after->record.resources ||
         before->record.tenant_name != after->record.tenant_name || before->record.type != after->record.type;
}

// Whether the request differs from its cached version. False if it cannot be read now.
Task<bool> HasChanged(store::Store& store, RequestId id, std::int64_t cached_mzxid) {
  auto now = co_await Attempt(store.requests.Read(std::move(id)));
  co_return now && (!*now || (*now)->revision.mzxid != cached_mzxid);
}

}  // namespace

Scheduler::Scheduler(Context& context, ClusterView& cluster, std::function<void(const RequestId&)> served)
    : context_(context),
      logger_("nodepool.NodePool"),
      cluster_(cluster),
      served_(std::move(served)),
      wait_log_(logger_),
      promises_(context.caches.nodes),
      deciding_(
          context.loop, "requests or capacity", {}, [this] { return Decide(); }, logger_),
      tasks_(context.loop, logger_) {}

Scheduler::~Scheduler() = default;

void Scheduler::SetPools(std::vector<PoolWorker*> pools) {
  pools_ = std::move(pools);
  // Preferred pools first; equal ones in a fixed order.
  std::sort(pools_.begin(), pools_.end(), [](const PoolWorker* a, const PoolWorker* b) {
    return std::make_pair(a->pool().config()->priority, a->key()) <
           std::make_pair(b->pool().config()->priority, b->key());
  });
  asked_.clear();
  asked_of_.clear();
  assigner_.SetPools({});
  are_pools_registered_.reset();
}

void Scheduler::Start() {
  subscriptions_.push_back(context_.caches.requests.OnChange(
      [this](const RequestId& id, const store::StoredRequest*, const store::StoredRequest* after) {
        RequestChanged(id, after);
      }));
  subscriptions_.push_back(context_.caches.nodes.OnChange(
      [this](const NodeId&, const store::StoredNode* before, const store::StoredNode* after) {
        // Whichever launcher was refused: the cloud is the same.
        if (after != nullptr && after->record.state == NodeState::kAborted)
          CloudRefused(after->record.provider);
        NodeChanged(before);
        NodeChanged(after);
        if (ChangesCapacity(before, after)) NewsCame();
      }));
  subscriptions_.push_back(
      context_.ledger.OnClaim([this](const NodeId& node) { NodeChanged(context_.caches.nodes.Find(node)); }));
  subscriptions_.push_back(
      context_.ledger.OnChange([this](const ProviderName& provider) { changed_.insert(provider); }));
  subscriptions_.push_back(
      context_.ledger.OnCapacityChange([this](const ProviderName& provider) { WakeFor(provider); }));
  subscriptions_.push_back(context_.caches.images.OnChange([this](const ImageName&) { Wake(); }));
  subscriptions_.push_back(
      context_.caches.components.OnChange([this](const std::string&, const Component*, const Component*) {
        is_registry_old_ = true;
        NewsCame();
      }));
  // Listeners are called for later changes only.
  for (const auto& [id, request] : context_.caches.requests.all()) RequestChanged(id, &request);
  tasks_.Spawn("assign requests", deciding_.Run());
}

void Scheduler::NodeChanged(const store::StoredNode* node) {
  if (node == nullptr) return;
  changed_.insert(node->record.provider);
  other_nodes_.insert({node->record.provider, node->record.pool});
}

void Scheduler::CloudRefused(const ProviderName& provider) {
  bool is_ours =
      std::ranges::any_of(pools_, [&](const PoolWorker* pool) { return pool->key().provider == provider; });
  if (is_ours) {
    context_.ledger.CloudRefused(provider, context_.loop.SteadyNow() + context_.intervals.refusal_memory);
  }
}

Task<> Scheduler::Stop() {
  subscriptions_.clear();
  co_await tasks_.Stop();
}

void Scheduler::RebuildRegistry() {
  std::set<std::pair<std::string, ProviderName>> failing;  // by the host of the launcher that says so
  for (const auto& [path, component] : context_.caches.components.all()) {
    for (const auto& [provider, report] : component.providers) {
      if (report.state == ProviderState::kFailing) failing.emplace(component.hostname, provider);
    }
  }
  std::vector<sched::RegisteredPool> pools;
  for (const Component* component : context_.caches.components.Pools()) {
    sched::RegisteredPool pool{component->id,
                               component->provider_name,
                               component->priority,
                               component->is_paused,
                               {component->supported_labels.begin(), component->supported_labels.end()},
                               component->name.value_or(PoolName()),
                               failing.contains({component->hostname, component->provider_name})};
    pool.is_provider_paused = context_.caches.pauses.Find(pool.provider) != nullptr;
    pool.heeds_breakers = component->locks_slots;
    pool.broken_labels = BrokenLabelsOf(pool);
    pools.push_back(std::move(pool));
  }
  assigner_.RegistryChanged(std::exchange(cluster_.registry, sched::Registry(std::move(pools))));
  are_pools_registered_.reset();
}

std::set<LabelName> Scheduler::BrokenLabelsOf(const sched::RegisteredPool& pool) const {
  std::set<LabelName> broken;
  if (!context_.breakers.AreAnyOpen(pool.provider)) return broken;
  for (const LabelName& label : pool.labels) {
    sched::Standing standing = context_.breakers.StandingOf({pool.provider, pool.name}, label);
    if (standing != sched::Standing::kClosed) broken.insert(label);
  }
  return broken;
}

void Scheduler::RequestChanged(const RequestId& id, const store::StoredRequest* after) {
  bool is_decided = after == nullptr || after->record.state != RequestState::kPending;
  if (is_decided && !under_way_.contains(id)) promises_.Release(id);
  if (after == nullptr) {
    cluster_.queues.Remove(id);
    for (PoolWorker* pool : pools_) pool->RequestGone(id);
  } else if (under_way_.contains(id)) {
    cluster_.queues.Remove(id);
  } else {
    cluster_.queues.Put(id, after->record);
    if (after->record.state == RequestState::kRequested) AskForProbes(after->record);
  }
  NewsCame();
}

void Scheduler::AskForProbes() {
  if (!context_.breakers.IsAnyOursToProbe()) return;
  std::map<sched::ServiceOrder, const NodeRequest*> first;
  for (const auto& [shape, line] : cluster_.queues.shapes()) {
    const auto& [order, waiting] = *line.requests.begin();
    first.emplace(order, waiting.request);
  }
  for (const auto& [order, request] : first) AskForProbes(*request);
}

// Whoever will serve it.
void Scheduler::AskForProbes(const NodeRequest& request) {
  if (!context_.breakers.IsAnyOursToProbe()) return;
  for (PoolWorker* pool : pools_) {
    if (pool->pool().IsProbeWanted(request)) context_.breakers.ProbeWanted(pool->key(), request.node_types);
  }
}

void Scheduler::DecisionEnded(const RequestId& id) {
  context_.breakers.RequestEnded(id);
  auto it = under_way_.find(id);
  if (it == under_way_.end()) return;
  tasks_.Spawn("reconsider request", log::OfRequest(id), Reconsider(id, it->second));
}

// Puts a request back in the queue when this launcher is done with it. The cache may not show yet what we
// just wrote: with very many requests it lags by minutes, and a decision based on it would try to accept the
// request again and again.
Task<> Scheduler::Reconsider(RequestId id, std::int64_t seen_mzxid) {
  auto is_as_seen = [&] {
    const store::StoredRequest* cached = context_.caches.requests.Find(id);
    return cached != nullptr && cached->revision.mzxid == seen_mzxid;
  };
  if (is_as_seen()) co_await context_.loop.SleepFor(std::chrono::seconds(1));
  bool does_cache_lag = is_as_seen();
  if (does_cache_lag) does_cache_lag = co_await HasChanged(context_.store, id, seen_mzxid);
  for (Duration pause = std::chrono::seconds(1); does_cache_lag && is_as_seen();
       pause = std::min(2 * pause, kMaxRecheckPause)) {
    co_await context_.loop.SleepFor(pause);
  }
  under_way_.erase(id);
  RequestChanged(id, context_.caches.requests.Find(id));
}

bool Scheduler::IsReady() {
  bool is_connected = context_.store.tree.client().state() == zk::SessionState::kConnected;
  if (!is_connected || !context_.caches.SyncedOrWake(deciding_)) return false;
  if (!are_pools_registered_) {
    are_pools_registered_ =
        std::ranges::all_of(pools_, [](const PoolWorker* pool) { return pool->pool().is_registered(); });
  }
  return *are_pools_registered_;
}

SteadyTime Scheduler::Decide() {
  SteadyTime begun = context_.loop.SteadyNow();
  if (begun < next_decision_) return next_decision_;
  if (std::exchange(is_registry_old_, false)) {
    RebuildRegistry();
    AskForProbes();
  }
  // Changes of the connection and the registry wake it.
  bool is_ready = IsReady();
  sched::Plan plan;
  if (is_ready) {
    // Only when a decision begins: its earlier portions did not see what has changed since.
    if (!considered_) has_news_ = false;
    ReadPools(begun);
    ReadTenants();
    plan = assigner_.Decide({considered_, kPortion});
  }
  SteadyTime decided = context_.loop.SteadyNow();
  Duration taken = decided - begun;
  if (taken >= kLongDecision)
    next_decision_ = decided + std::min(kPausePerDecision * taken, kMaxDecisionPause);
  if (!is_ready) {
    considered_.reset();
    return SteadyTime::max();
  }
  for (const auto& acceptance : plan.accept) CarryOut(acceptance);
  for (const auto& declination : plan.decline) CarryOut(declination);
  considered_ = std::move(plan.continues_after);
  return considered_ ? std::max(decided, next_decision_) : EndDecision();
}

SteadyTime Scheduler::EndDecision() {
  SteadyTime now = context_.loop.SteadyNow();
  auto answers_of = [this](const sched::Shape& shape) { return WaitingOf(shape); };
  wait_log_.Report(cluster_.queues.TakeChanges(), answers_of, cluster_.queues, now);
  if (has_news_) return now;
  // Then what a full cloud has refused is tried again.
  SteadyTime next = context_.ledger.NextCloudFree(now);
  all_due_ = std::min(all_due_, next);
  if (!is_all_read_) next = all_due_;
  return cluster_.queues.IsProviderAtFault() ? std::min(next, now + context_.intervals.provider_probe) : next;
}

// Those of providers of which an event has told something: pools of one provider share its limits, so what
// changes one may change all of them. Drivers may announce nothing, so after a while all are read.
void Scheduler::ReadPools(SteadyTime now) {
  std::set<ProviderName> changed = std::exchange(changed_, {});
  is_all_read_ = std::exchange(are_all_changed_, false) || now >= all_due_;
  if (is_all_read_) {
    all_due_ = now + context_.intervals.unannounced_change;
    return ReadAllPools();
  }
  std::set<PoolKey> other_nodes = std::exchange(other_nodes_, {});
  for (const ProviderName& provider : changed) {
    for (std::size_t position : FindOrEmpty(asked_of_, provider)) {
      asked_[position]->CapacityChanged();
      ReadPool(position, other_nodes);
    }
  }
}

void Scheduler::ReadPool(std::size_t position, const std::set<PoolKey>& other_nodes) {
  ++view_count_;
  sched::PoolView view = asked_[position]->pool().View();
  bool has_other_nodes = other_nodes.contains(view.key);
  assigner_.SetPool(position, std::move(view), has_other_nodes);
}

void Scheduler::ReadAllPools() {
  std::vector<PoolWorker*> asked;
  for (PoolWorker* pool : pools_) {
    pool->CapacityChanged();
    if (pool->pool().provider() != nullptr) asked.push_back(pool);
  }
  std::set<PoolKey> other_nodes = std::exchange(other_nodes_, {});
  // The assigner keeps its answers as long as its pools are the same ones.
  if (asked == asked_) {
    for (std::size_t position = 0; position < asked_.size(); ++position) ReadPool(position, other_nodes);
    return;
  }
  asked_ = std::move(asked);
  asked_of_.clear();
  std::vector<sched::PoolView> views;
  for (PoolWorker* pool : asked_) {
    ++view_count_;
    asked_of_[pool->key().provider].push_back(views.size());
    views.push_back(pool->pool().View());
  }
  assigner_.SetPools(std::move(views));
}

void Scheduler::ReadTenants() {
  std::map<std::string, sched::TenantView> tenants;
  for (const auto& [tenant, limit] : context_.config->common.tenant_limits) {
    sched::TenantView view{limit, context_.caches.nodes.UsedByTenant(tenant)};
    Add(view.used, promises_.Of(tenant));
    tenants.emplace(tenant, std::move(view));
  }
  assigner_.SetTenants(std::move(tenants));
}

void Scheduler::CarryOut(const sched::Plan::Acceptance& acceptance) {
  const store::StoredRequest* request = context_.caches.requests.Find(acceptance.request);
  auto pool = std::find_if(pools_.begin(), pools_.end(),
                           [&](const PoolWorker* candidate) { return candidate->key() == acceptance.pool; });
  auto order = sched::OrderOf(request->id, request->record);
  // From now on no change of its record puts it into the queues again.
  under_way_[acceptance.request] = request->revision.mzxid;
  changed_.insert(acceptance.pool.provider);  // the assigner counts what it has given away
  store::StoredRequest seen = *request;
  cluster_.queues.Remove(acceptance.request);
  if (seen.record.tenant_name && context_.config->common.tenant_limits.contains(*seen.record.tenant_name)) {
    promises_.Make(seen.id, *seen.record.tenant_name, (*pool)->pool().NeedOf(seen.record.node_types),
                   (*pool)->pool().launcher_id());
  }
  auto ended = [this, id = seen.id] {
    DecisionEnded(id);
    served_(id);
  };
  if (acceptance.standing != sched::Standing::kClosed)
    context_.breakers.RequestAccepted(seen.id, acceptance.pool, seen.record.node_types, acceptance.standing);
  (*pool)->Accept(std::move(seen), std::move(*order), acceptance.standing, ended);
}

void Scheduler::CarryOut(const sched::Plan::Declination& declination) {
  const store::StoredRequest* request = context_.caches.requests.Find(declination.request);
  under_way_[declination.request] = request->revision.mzxid;
  cluster_.queues.Remove(declination.request);
  tasks_.Spawn("decline request", log::OfRequest(declination.request),
               Decline(declination.request, declination.by));
}

Task<> Scheduler::Decline(RequestId id, sched::Answers by) {
  Outcome<> declined = co_await Attempt(TryDecline(id, std::move(by)));
  if (!declined) {
    logger_.About(log::OfRequest(id))
        .Warning("The request could not be declined: {}", declined.error().message());
  }
  DecisionEnded(id);
}

const Pool* Scheduler::FindPool(const PoolKey& key) const {
  auto found = std::ranges::find_if(pools_, [&](const PoolWorker* worker) { return worker->key() == key; });
  return found == pools_.end() ? nullptr : &(*found)->pool();
}

// What a pool lacks may have appeared since its provider last read its cloud: that costs no request its life.
Task<bool> Scheduler::IsStillDeclined(RequestId id, sched::Answers by) {
  const store::StoredRequest* cached = context_.caches.requests.Find(id);
  if (cached == nullptr) co_return false;
  const NodeRequest request = cached->record;
  for (const auto& [key, decision] : by) {
    const Pool* pool = FindPool(key);
    if (pool == nullptr || !pool->MayHavePassed(request, decision)) continue;
    std::shared_ptr<driver::Provider> provider = pool->provider();
    co_await provider->LookAgain();
    pool = FindPool(key);
    bool declines = pool != nullptr && pool->StillAcceptable(request).kind == sched::Decision::Kind::kDecline;
    if (!declines) co_return false;
  }
  co_return true;
}

Task<> Scheduler::TryDecline(RequestId id, sched::Answers by) {
  // Before the lock: the cloud may answer late, and no other launcher could take the request meanwhile.
  bool is_declined = co_await IsStillDeclined(id, by);
  if (!is_declined) co_return;
  auto request = co_await context_.store.requests.TryLock(id);
  if (!request) co_return;
  std::vector<sched::Decliner> decliners;
  // Pools may have gone while the cloud was asked.
  for (const auto& [key, decision] : by) {
    for (const PoolWorker* worker : pools_) {
      const Pool& pool = worker->pool();
      if (pool.key() == key)
        decliners.push_back(pool.DeclineFor(pool.WhyDeclined(request->record(), decision)));
    }
  }
  log::Logger logger = logger_.About({request->record().event_id.value_or(""), id.value, ""});
  for (const auto& [key, decision] : by) {
    logger.Info("Declining in pool {} of provider {}: {}{}{}", key.pool, key.provider,
                ToString(decision.reason), decision.detail.empty() ? "" : ": ", decision.detail);
  }
  WallTime now = context_.loop.Now();
  const sched::Registry* registry = &cluster_.registry;
  auto decline = [decliners, now, registry](NodeRequest& record) {
    if (record.state != RequestState::kRequested) return store::Change::kSkip;
    sched::Decline(record, decliners, *registry, now);
    return store::Change::kWrite;
  };
  bool is_written = co_await request->UpdateAndUnlock(decline);
  if (is_written) logger.Debug("Declined");
}

}  // namespace nodepool::launcher
