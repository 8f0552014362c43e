#include "launcher/scheduler.h"

#include <algorithm>

#include "model/resources.h"

namespace nodepool::launcher {
namespace {

// Between two looks at a cache that lags.
constexpr Duration kLongestLook = std::chrono::seconds(8);

// Whether a change of a node can alter what can be handed out or launched.
bool ChangesCapacity(const store::StoredNode* before, const store::StoredNode* after) {
  if (before == nullptr || after == nullptr) return true;
  bool was_available = before->record.is_free() && !before->is_locked();
  bool is_available = after->record.is_free() && !after->is_locked();
  return was_available != is_available || before->record.resources != after->record.resources ||
         before->record.tenant_name != after->record.tenant_name || before->record.type != after->record.type;
}

// Whether the request is another than its cached version. False when that cannot be told now.
Task<bool> HasChanged(store::Store& store, RequestId id, std::int64_t cached_mzxid) {
  std::exception_ptr error;
  try {
    auto now = co_await store.requests.Read(std::move(id));
    co_return !now || now->revision.mzxid != cached_mzxid;
  } catch (...) {
    error = std::current_exception();
  }
  if (VerdictOf(error) == Verdict::kCancelled) std::rethrow_exception(error);
  co_return false;
}

}  // namespace

Scheduler::Scheduler(Context& context)
    : context_(context),
      logger_("nodepool.NodePool"),
      wait_log_(logger_),
      promises_(context.nodes),
      tasks_(context.loop, logger_) {}

Scheduler::~Scheduler() = default;

void Scheduler::SetPools(std::vector<PoolWorker*> pools) {
  pools_ = std::move(pools);
  // Preferred pools are asked first; equal ones in a fixed order.
  std::sort(pools_.begin(), pools_.end(), [](const PoolWorker* a, const PoolWorker* b) {
    return std::make_pair(a->pool_config()->priority, a->key()) <
           std::make_pair(b->pool_config()->priority, b->key());
  });
}

void Scheduler::Start() {
  subscriptions_.push_back(
      context_.requests.OnChange([this](const RequestId& id, const store::StoredRequest*,
                                        const store::StoredRequest* after) { RequestChanged(id, after); }));
  subscriptions_.push_back(context_.nodes.OnChange(
      [this](const NodeId&, const store::StoredNode* before, const store::StoredNode* after) {
        if (after != nullptr && after->record.state == NodeState::kAborted)
          CloudRefused(after->record.provider);
        if (ChangesCapacity(before, after)) Wake();
      }));
  subscriptions_.push_back(context_.images.OnChange([this](const ImageName&) { Wake(); }));
  subscriptions_.push_back(context_.registry.OnChange([this] {
    RebuildRegistry();
    Wake();
  }));
  for (const auto& [id, request] : context_.requests.all()) RequestChanged(id, &request);
  RebuildRegistry();
  Wake();
  tasks_.Spawn("assign requests", Run());
}

void Scheduler::CloudRefused(const ProviderName& provider) {
  auto pool =
      std::ranges::find(pools_, provider, [](const PoolWorker* worker) { return worker->key().provider; });
  if (pool != pools_.end()) (*pool)->CloudRefused();
}

Task<> Scheduler::Stop() {
  subscriptions_.clear();
  co_await tasks_.Stop();
}

void Scheduler::RebuildRegistry() {
  std::vector<sched::RegisteredPool> pools;
  for (const Component* component : context_.registry.Pools()) {
    pools.push_back({component->id,
                     component->provider_name,
                     component->priority,
                     component->is_paused,
                     {component->supported_labels.begin(), component->supported_labels.end()},
                     component->name.value_or(PoolName())});
  }
  registry_ = sched::Registry(std::move(pools));
}

void Scheduler::RequestChanged(const RequestId& id, const store::StoredRequest* after) {
  bool is_decided = after == nullptr || after->record.state != RequestState::kPending;
  if (is_decided && !under_way_.contains(id)) promises_.Release(id);
  if (after == nullptr) {
    queues_.Remove(id);
    for (PoolWorker* pool : pools_) pool->RequestGone(id);
  } else if (under_way_.contains(id)) {
    queues_.Remove(id);
  } else {
    queues_.Put(id, after->record);
  }
  Wake();
}

void Scheduler::HandlerEnded(const RequestId& id) {
  auto it = under_way_.find(id);
  if (it == under_way_.end()) return;
  tasks_.Spawn("reconsider request", {"", id.value, ""}, Reconsider(id, it->second));
}

// Puts a request back in line when it is out of our hands again. The cache may not
// show yet what we just wrote: among very many requests it lags by minutes, and whoever
// trusted it then would try to accept the request again and again.
Task<> Scheduler::Reconsider(RequestId id, std::int64_t seen_mzxid) {
  auto is_as_seen = [&] {
    const store::StoredRequest* cached = context_.requests.Find(id);
    return cached != nullptr && cached->revision.mzxid == seen_mzxid;
  };
  if (is_as_seen()) co_await context_.loop.SleepFor(std::chrono::seconds(1));
  bool does_cache_lag = is_as_seen();
  if (does_cache_lag) does_cache_lag = co_await HasChanged(context_.store, id, seen_mzxid);
  for (Duration pause = std::chrono::seconds(1); does_cache_lag && is_as_seen();
       pause = std::min(2 * pause, kLongestLook)) {
    co_await context_.loop.SleepFor(pause);
  }
  under_way_.erase(id);
  RequestChanged(id, context_.requests.Find(id));
}

bool Scheduler::IsReady() const {
  bool is_connected = context_.store.tree.client().state() == zk::SessionState::kConnected;
  return is_connected && context_.requests.synced() && context_.nodes.synced() && context_.images.synced() &&
         context_.registry.synced() && std::all_of(pools_.begin(), pools_.end(), [](const PoolWorker* pool) {
           return pool->is_registered();
         });
}

Task<> Scheduler::Run() {
  while (true) {
    co_await wake_.Wait();
    wake_.Reset();
    if (IsReady()) {
      RunOnce();
    } else {
      co_await context_.loop.SleepFor(std::chrono::milliseconds(100));
      wake_.Set();
    }
  }
}

void Scheduler::RunOnce() {
  for (PoolWorker* pool : pools_) pool->CapacityChanged();
  plan_ = sched::Assign(TakeSnapshot());
  for (const auto& acceptance : plan_.accept) CarryOut(acceptance);
  for (const auto& declination : plan_.decline) CarryOut(declination);
  wait_log_.Tell(plan_.waiting, queues_, context_.loop.SteadyNow());
  if (IsProviderAtFault() && !is_probe_due_) {
    is_probe_due_ = true;
    tasks_.Spawn("ask faulty providers again", ProbeLater());
  }
}

bool Scheduler::IsProviderAtFault() const {
  auto is_fault = [](const auto& answer) { return answer.second.reason == sched::Reason::kProviderFault; };
  return std::any_of(plan_.waiting.begin(), plan_.waiting.end(), [&](const auto& entry) {
    return std::any_of(entry.second.begin(), entry.second.end(), is_fault);
  });
}

Task<> Scheduler::ProbeLater() {
  co_await context_.loop.SleepFor(context_.intervals.provider_probe);
  is_probe_due_ = false;
  Wake();
}

sched::Snapshot Scheduler::TakeSnapshot() const {
  sched::Snapshot snapshot;
  snapshot.registry = &registry_;
  snapshot.queues = &queues_;
  for (const PoolWorker* pool : pools_) {
    if (pool->provider() != nullptr) snapshot.pools.push_back(pool->View());
  }
  for (const auto& [tenant, limit] : context_.config->common.tenant_limits) {
    sched::TenantView view{limit, context_.nodes.UsedByTenant(tenant)};
    Add(view.used, promises_.Of(tenant));
    snapshot.tenants.emplace(tenant, std::move(view));
  }
  return snapshot;
}

void Scheduler::CarryOut(const sched::Plan::Acceptance& acceptance) {
  const store::StoredRequest* request = context_.requests.Find(acceptance.request);
  auto pool = std::find_if(pools_.begin(), pools_.end(),
                           [&](const PoolWorker* candidate) { return candidate->key() == acceptance.pool; });
  auto order = sched::OrderOf(request->id, request->record);
  under_way_[acceptance.request] = request->revision.mzxid;
  store::StoredRequest seen = *request;
  queues_.Remove(acceptance.request);
  if (seen.record.tenant_name && context_.config->common.tenant_limits.contains(*seen.record.tenant_name)) {
    promises_.Make(seen.id, *seen.record.tenant_name, (*pool)->NeedOf(seen.record.node_types),
                   (*pool)->launcher_id());
  }
  (*pool)->Accept(std::move(seen), std::move(*order));
}

void Scheduler::CarryOut(const sched::Plan::Declination& declination) {
  const store::StoredRequest* request = context_.requests.Find(declination.request);
  under_way_[declination.request] = request->revision.mzxid;
  queues_.Remove(declination.request);
  tasks_.Spawn("decline request", {"", declination.request.value, ""},
               Decline(declination.request, declination.by));
}

Task<> Scheduler::Decline(RequestId id, sched::Answers by) {
  std::vector<LauncherId> decliners;
  for (const auto& [key, decision] : by) {
    for (const PoolWorker* pool : pools_) {
      if (pool->key() == key) decliners.push_back(pool->launcher_id());
    }
  }
  std::exception_ptr error;
  try {
    auto request = co_await context_.store.requests.TryLock(id);
    if (request) {
      log::Logger logger = logger_.About({request->record().event_id.value_or(""), id.value, ""});
      for (const auto& [key, decision] : by) {
        logger.Info("Declining in pool {} of provider {}: {}{}{}", key.pool, key.provider,
                    ToString(decision.reason), decision.detail.empty() ? "" : ": ", decision.detail);
      }
      WallTime now = context_.loop.Now();
      const sched::Registry* registry = &registry_;
      auto decline = [decliners, now, registry](NodeRequest& record) {
        if (record.state != RequestState::kRequested) return store::Change::kSkip;
        for (const LauncherId& launcher : decliners) {
          if (!record.WasDeclinedBy(launcher)) record.declined_by.push_back(launcher);
        }
        record.SetState(registry->AllDeclined(record) ? RequestState::kFailed : RequestState::kRequested,
                        now);
        return store::Change::kWrite;
      };
      bool is_written = co_await request->UpdateAndUnlock(decline);
      if (is_written) logger.Debug("Declined");
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (error)
    logger_.About({"", id.value, ""}).Warning("The request could not be declined: {}", MessageOf(error));
  HandlerEnded(id);
}

std::set<LabelName> Scheduler::WantedLabels() const {
  std::set<LabelName> wanted;
  for (const auto& [shape, queue] : queues_.shapes()) {
    if (shape.reuse) wanted.insert(shape.node_types.begin(), shape.node_types.end());
  }
  return wanted;
}

}  // namespace nodepool::launcher
