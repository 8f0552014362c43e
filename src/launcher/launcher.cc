#include "launcher/launcher.h"

#include <algorithm>

#include "async/deadline.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/text.h"
#include "base/version.h"

namespace nodepool::launcher {

namespace {

constexpr Duration kFaultsPause = std::chrono::milliseconds(500);

}  // namespace

Launcher::Launcher(Loop& loop, Random& random, BlockingPool& blocking_pool, metrics::Metrics& metrics,
                   zk::Client& client, driver::Registry& drivers,
                   std::shared_ptr<const driver::LoadedConfig> config, Options options)
    : options_(std::move(options)),
      logger_("nodepool.NodePool"),
      store_(loop, client, random),
      caches_(loop, client),
      ledger_(caches_.nodes),
      breakers_(loop, random, store_, caches_.breakers, ForBreakers()),
      context_{std::move(config),
               loop,
               random,
               blocking_pool,
               metrics,
               store_,
               ledger_,
               breakers_,
               caches_,
               options_.hostname,
               options_.intervals,
               options_.duties},
      providers_(context_, drivers),
      entry_(loop, client, Announcement()),
      lost_requests_(context_),
      scheduler_(context_, cluster_, [this](const RequestId& id) { lost_requests_.Served(id); }),
      failed_requests_(loop, caches_.requests),
      peers_(context_, [this] { return entry_.path(); }),
      view_(context_, providers_, scheduler_, failed_requests_, pools_, draining_, peers_),
      deleted_nodes_(context_, providers_),
      cleanup_(context_, providers_),
      drains_(context_, providers_),
      min_ready_(
          context_, [this](const LabelName& label) { return OfferOf(label); },
          [this](const MinReady::Shortages& shortages) {
            shortages_ = shortages;
            Announce();
          }),
      label_faults_(
          loop, "faults of labels", {.settle = kFaultsPause, .longest = context_.intervals.cleanup},
          [this] {
            AnnounceFaults();
            return SteadyTime::max();
          },
          logger_),
      stats_(context_, providers_),
      job_events_(context_),
      leases_(context_),
      lease_desk_(context_),
      tasks_(loop, logger_) {
  loops_.Add("decisions", scheduler_);
  loops_.Add("resets", lost_requests_);
  if (options_.duties.deletes) {
    loops_.Add("clean-up", cleanup_);
    loops_.Add("drains", drains_);
  }
  loops_.Add("min-ready requests", min_ready_);
  loops_.Add("statistics", stats_);
  loops_.Add("job events", job_events_);
  loops_.Add("the keeping of leases", leases_);
}

Launcher::~Launcher() = default;

// It may be asked when the members behind it exist: from Start() on.
Breakers::Launcher Launcher::ForBreakers() const {
  auto settings_of = [this](const ProviderName& name) -> const BreakerSettings* {
    const auto& providers = context_.config->providers;
    auto found = providers.find(name);
    bool is_served = found != providers.end() && context_.duties.launches;
    return is_served ? &found->second->breaker : nullptr;
  };
  auto is_configured = [this](const BreakerKey& key) {
    const auto& providers = context_.config->providers;
    auto provider = providers.find(key.provider);
    if (provider == providers.end()) return false;
    if (key.pool.empty()) return true;
    auto pool = provider->second->pools.find(key.pool);
    if (pool == provider->second->pools.end()) return false;
    return key.label.empty() || pool->second->labels.contains(key.label);
  };
  auto is_left = [this](const PoolKey& pool, const RequestId& id) {
    auto worker = pools_.find(pool);
    const store::StoredRequest* request = caches_.requests.Find(id);
    return worker != pools_.end() && request != nullptr &&
           worker->second->pool().IsLeftByBreaker(request->record);
  };
  return {.settings_of = settings_of,
          .id = [this] { return entry_.path(); },
          .is_alive = [this](const std::string& id) { return caches_.components.Contains(id); },
          .is_configured = is_configured,
          .is_left = is_left};
}

Component Launcher::Announcement() const {
  Component component;
  component.kind = ComponentKind::kLauncher;
  component.hostname = options_.hostname;
  component.state = is_serving_ ? ComponentState::kRunning : ComponentState::kStopped;
  component.version = Version();
  component.locks_slots = true;
  component.web = web_;
  component.configuration_rejected = rejected_;
  component.shortages = shortages_;
  for (const ProviderName& name : providers_.Managed()) component.providers[name] = providers_.ReportOf(name);
  return component;
}

void Launcher::HasWebServer(WebServer server, AskPeer ask) {
  web_ = server;
  peers_.AskBy(std::move(ask));
  Announce();
}

void Launcher::Announce() { entry_.Update(Announcement()); }

Task<> Launcher::Start() {
  logger_.Info("Nodepool launcher {} starting", Version());
  session_ = store_.tree.client().OnSession([this](zk::SessionState state) { SessionChanged(state); });
  co_await store::EnsureComponentDirectories(context_.loop, store_.tree.client());
  for (store::Cache* cache : caches_.all()) cache->Start();
  co_await entry_.Register();
  co_await caches_.WaitSynced();
  // Not earlier: a provider takes machines without a record in the caches for others' (launcher.md 19.2).
  providers_.Start({[this](const ProviderName& name) { ProviderStarted(name); }, [this] { HealthChanged(); },
                    [this](const ProviderName& name) { CapacityChangedIn(name); }});
  providers_.Configure(*context_.config);
  for (const auto& [provider, pause] : caches_.pauses.all()) PauseChanged(provider, &pause);
  pauses_ = caches_.pauses.OnChange([this](const ProviderName& provider, const ProviderPause*,
                                           const ProviderPause* after) { PauseChanged(provider, after); });
  Announce();
  co_await providers_.AwaitFirstAttempts();
  std::vector<std::shared_ptr<PoolWorker>> pools = AddMissingPools();
  for (const std::shared_ptr<PoolWorker>& worker : pools) co_await StartPool(worker);
  is_serving_ = true;
  Announce();
  breakers_.Start([this] { BreakersChanged(); });
  if (options_.duties.deletes) {
    deleted_nodes_.Start();
  } else {
    logger_.Info("This launcher deletes nothing; another one has to");
    deleted_nodes_.StopAccepting();
  }
  if (!options_.duties.launches) logger_.Info("This launcher launches nothing; it hands out what is ready");
  loops_.Start();
  images_ = caches_.images.OnChange([this](const ImageName&) { label_faults_.Wake(); });
  tasks_.Spawn("announce faults of labels", label_faults_.Run());
  logger_.Info("Serving {} pools of {} providers", pools_.size(), context_.config->providers.size());
}

// Creates the missing workers of configured pools whose provider runs.
std::vector<std::shared_ptr<PoolWorker>> Launcher::AddMissingPools() {
  std::vector<std::shared_ptr<PoolWorker>> added;
  for (const auto& [name, provider] : context_.config->providers) {
    if (providers_.Find(name) == nullptr) continue;
    for (const auto& [pool_name, pool] : provider->pools) {
      std::shared_ptr<PoolWorker>& worker = pools_[{name, pool_name}];
      if (worker) continue;
      worker = std::make_shared<PoolWorker>(context_, providers_, cluster_, provider, pool, options_.fqdn);
      added.push_back(worker);
    }
  }
  return added;
}

Task<> Launcher::StartPool(std::shared_ptr<PoolWorker> worker) {
  co_await worker->Start();
  PoolsChanged();
}

void Launcher::PoolsChanged() {
  std::vector<PoolWorker*> started;
  for (const auto& [key, worker] : pools_) {
    if (worker->is_started()) started.push_back(worker.get());
  }
  scheduler_.SetPools(std::move(started));
  CapacityChanged();
}

void Launcher::StartMissingPools() {
  std::vector<std::shared_ptr<PoolWorker>> added = AddMissingPools();
  for (const std::shared_ptr<PoolWorker>& worker : added) {
    tasks_.Spawn("start pool " + worker->key().pool.value, StartPool(worker));
  }
}

void Launcher::ProviderStarted(const ProviderName& name) {
  Announce();
  if (!is_serving_) return;
  StartMissingPools();
  for (const auto& [key, worker] : pools_) {
    if (key.provider == name) worker->ProviderChanged();
  }
  deleted_nodes_.ProviderStarted(name);
  stats_.Wake();
  CapacityChanged();
}

void Launcher::CapacityChanged() {
  scheduler_.Wake();
  FollowCapacity();
}

void Launcher::CapacityChangedIn(const ProviderName& provider) {
  scheduler_.WakeFor(provider);
  FollowCapacity();
}

// What else depends on it.
void Launcher::FollowCapacity() {
  min_ready_.CapacityChanged();
  label_faults_.Wake();
  Announce();
}

void Launcher::AnnounceFaults() {
  for (const auto& [key, worker] : pools_) {
    if (worker->is_started()) worker->AnnounceFaults();
  }
}

void Launcher::ConfigurationRejected(std::optional<RejectedConfiguration> rejected) {
  rejected_ = std::move(rejected);
  Announce();
}

void Launcher::HealthChanged() {
  stats_.Wake();
  CapacityChanged();
}

void Launcher::BreakersChanged() {
  scheduler_.RegistryChanged();
  stats_.Wake();
}

void Launcher::PauseChanged(const ProviderName& provider, const ProviderPause* pause) {
  if (pause == nullptr) {
    logger_.Info("Provider {} is not paused any more", provider);
  } else {
    logger_.Info("Provider {} is {} by {}", provider, pause->is_drained ? "drained" : "paused",
                 WhoAndWhy(*pause));
  }
  if (!is_serving_) return;
  scheduler_.RegistryChanged();
  stats_.Wake();
  CapacityChanged();
}

void Launcher::Reconfigure(std::shared_ptr<const driver::LoadedConfig> config) {
  if (!is_serving_) return;
  std::shared_ptr<const driver::LoadedConfig> before = std::exchange(context_.config, std::move(config));
  const auto& providers = context_.config->providers;
  providers_.Configure(*context_.config);
  // Workers that stay keep launcher id, handlers and announcement (launcher.md 4.3).
  std::map<PoolKey, std::shared_ptr<PoolWorker>> workers = std::exchange(pools_, {});
  for (const auto& [key, worker] : workers) {
    auto provider = providers.find(key.provider);
    bool is_configured = provider != providers.end() && provider->second->pools.contains(key.pool);
    if (is_configured) {
      worker->Configure(provider->second, provider->second->pools.at(key.pool));
      pools_.emplace(key, worker);
    } else {
      // Apart from `pools_`, so that a pool that comes back under this name begins anew beside it.
      draining_.insert(worker);
      tasks_.Spawn("drain pool " + key.pool.value, DrainPool(worker));
    }
  }
  for (const auto& [name, provider] : before->providers) {
    if (providers.contains(name)) continue;
    providers_.Drain(name);
    tasks_.Spawn("drain provider " + name.value, DrainProvider(name));
  }
  breakers_.Reconfigured();
  Announce();
  StartMissingPools();
  PoolsChanged();
  stats_.Wake();
  job_events_.Reconfigure();
}

Task<> Launcher::DrainPool(std::shared_ptr<PoolWorker> worker) {
  co_await worker->Drain();
  draining_.erase(worker);
  drained_.NotifyAll();
}

bool Launcher::IsDraining(const ProviderName& name) const {
  return std::any_of(draining_.begin(), draining_.end(),
                     [&](const auto& worker) { return worker->key().provider == name; });
}

// Its dead nodes are deleted before the provider is removed (D-31).
Task<> Launcher::DrainProvider(ProviderName name) {
  while (IsDraining(name)) co_await drained_.Wait();
  SteadyTime deadline = context_.loop.SteadyNow() + context_.intervals.delete_timeout;
  Outcome<> clean = co_await Attempt(
      WithDeadline(context_.loop, deadline, "deleting its dead nodes", deleted_nodes_.AwaitClean(name)));
  if (!clean) logger_.Warning("Provider {} is left with dead nodes: {}", name, clean.error().message());
  // A reload may have brought it back meanwhile, and removed it again.
  bool is_back = context_.config->providers.contains(name);
  if (is_back || IsDraining(name)) co_return;
  providers_.Remove(name);
  Announce();
}

LabelOffer Launcher::OfferOf(const LabelName& label) const {
  std::vector<std::string> lacking;
  for (const auto& [key, worker] : pools_) {
    const Pool& pool = worker->pool();
    if (pool.IsLabelAvailable(label)) return {.is_available = true};
    auto fault = pool.faults().find(label);
    if (fault != pool.faults().end() && pool.ProviderFault().empty()) lacking.push_back(fault->second);
  }
  return {.lacks = Join(lacking, "; ")};
}

void Launcher::SessionChanged(zk::SessionState state) {
  if (state == zk::SessionState::kSuspended) logger_.Info("ZooKeeper suspended. Waiting");
  if (state == zk::SessionState::kConnected) {
    logger_.Info("ZooKeeper available. Resuming");
    scheduler_.Wake();
  }
  if (state != zk::SessionState::kLost) return;
  logger_.Warning("The ZooKeeper session is lost: dropping all work done under its locks");
  for (const auto& [key, worker] : pools_) worker->SessionLost();
  for (const auto& worker : draining_) worker->SessionLost();
  deleted_nodes_.SessionLost();
  breakers_.SessionLost();
  loops_.SessionLost();
}

Task<> Launcher::CatchUp() {
  co_await caches_.nodes.CatchUp();
  co_await caches_.images.CatchUp();
  co_await caches_.pauses.CatchUp();
}

bool Launcher::is_ready() const {
  bool is_connected = context_.store.tree.client().state() == zk::SessionState::kConnected;
  return is_serving_ && is_connected && providers_.all_up();
}

Task<> Launcher::Stop() {
  if (std::exchange(is_serving_, false)) logger_.Info("Stopping");
  session_.Reset();
  pauses_.Reset();
  images_.Reset();
  Duration graceful_stop = context_.config->common.graceful_stop;
  SteadyTime deadline = context_.loop.SteadyNow() + graceful_stop;
  StopSteps steps(context_.loop, logger_, deadline);
  deleted_nodes_.StopAccepting();
  co_await steps.Do("ending the start", tasks_.Stop());
  co_await steps.Do("ending questions to other launchers", peers_.Stop());
  co_await loops_.Stop(steps);
  const std::map<PoolKey, std::shared_ptr<PoolWorker>> pools = pools_;
  for (const auto& [key, worker] : pools) co_await steps.Do("giving requests back", worker->Stop());
  std::set<std::shared_ptr<PoolWorker>> draining = draining_;
  for (const auto& worker : draining) co_await steps.Do("giving requests back", worker->Stop());
  // Deletions use the providers, so they end first.
  SteadyTime deletions_end = std::min(deadline, context_.loop.SteadyNow() + graceful_stop / 2);
  co_await steps.DoBy(deletions_end, "finishing deletions", deleted_nodes_.Finish());
  co_await steps.Do("ending deletions", deleted_nodes_.Stop());
  co_await steps.Do("stopping providers", providers_.Stop());
  co_await steps.Do("ending the writing of breakers", breakers_.Stop());
  co_await steps.Do("removing the announcement", entry_.Unregister());
  co_await caches_.Stop();
}

}  // namespace nodepool::launcher
