#include "launcher/launcher.h"

#include "async/deadline.h"

namespace nodepool::launcher {
namespace {

Component LauncherComponent(const std::string& hostname, ComponentState state) {
  Component component;
  component.kind = ComponentKind::kLauncher;
  component.hostname = hostname;
  component.state = state;
  component.version = NODEPOOL_VERSION;
  return component;
}

}  // namespace

Launcher::Launcher(Loop& loop, Random& random, BlockingPool& blocking_pool, zk::Client& client,
                   driver::Registry& drivers, std::shared_ptr<const driver::LoadedConfig> config,
                   Options options)
    : config_(std::move(config)),
      options_(std::move(options)),
      logger_("nodepool.NodePool"),
      store_(loop, client, random),
      nodes_(loop, client),
      requests_(loop, client),
      request_locks_(loop, client),
      images_(loop, client),
      registry_(loop, client),
      context_{loop,      random,         blocking_pool, store_,    nodes_,
               requests_, request_locks_, images_,       registry_, options_.intervals},
      entry_(loop, client, LauncherComponent(options_.hostname, ComponentState::kStopped)),
      ledger_(nodes_),
      providers_(context_, drivers),
      scheduler_(context_, ledger_, config_->common),
      surroundings_{context_,
                    providers_,
                    ledger_,
                    scheduler_.registry(),
                    [this] { return scheduler_.WantedLabels(); },
                    [this](const RequestId& id) {
                      scheduler_.HandlerEnded(id);
                      lost_requests_.Served(id);
                    },
                    [this] { scheduler_.Wake(); }},
      deleted_nodes_(context_, providers_),
      lost_requests_(context_),
      cleanup_(context_, providers_, config_->common),
      min_ready_(context_, config_->common,
                 [this](const LabelName& label) { return IsLabelAvailable(label); }),
      tasks_(loop, logger_) {}

Launcher::~Launcher() = default;

Task<> Launcher::Start() {
  logger_.Info("Nodepool launcher {} starting", NODEPOOL_VERSION);
  session_ = store_.client().OnSession([this](zk::SessionState state) { SessionChanged(state); });
  co_await registry_.Start();
  nodes_.Start();
  requests_.Start();
  request_locks_.Start();
  images_.Start();
  co_await entry_.Register();
  co_await nodes_.WaitSynced();
  co_await requests_.WaitSynced();
  co_await request_locks_.WaitSynced();
  co_await images_.WaitSynced();
  providers_.Start(*config_, [this](const ProviderName& name) { ProviderChanged(name); });
  co_await providers_.WaitTried();
  for (const auto& [name, provider] : config_->providers) {
    if (providers_.Find(name) != nullptr) co_await StartPools(name);
  }
  is_serving_ = true;
  entry_.Update(LauncherComponent(options_.hostname, ComponentState::kRunning));
  scheduler_.Start();
  deleted_nodes_.Start();
  lost_requests_.Start();
  cleanup_.Start();
  min_ready_.Start();
  logger_.Info("Serving {} pools of {} providers", pools_.size(), config_->providers.size());
}

Task<> Launcher::StartPools(ProviderName name) {
  std::shared_ptr<const driver::ProviderConfig> provider = config_->providers.at(name);
  std::vector<PoolWorker*> started;
  for (const auto& [pool_name, pool] : provider->pools) {
    PoolKey key{name, pool_name};
    if (pools_.contains(key)) continue;
    auto worker =
        std::make_unique<PoolWorker>(surroundings_, provider, pool, options_.hostname, options_.fqdn);
    started.push_back(worker.get());
    pools_.emplace(key, std::move(worker));
  }
  for (PoolWorker* worker : started) co_await worker->Start();
  scheduler_.SetPools(Pools());
  scheduler_.Wake();
}

std::vector<PoolWorker*> Launcher::Pools() const {
  std::vector<PoolWorker*> pools;
  for (const auto& [key, worker] : pools_) pools.push_back(worker.get());
  return pools;
}

void Launcher::ProviderChanged(const ProviderName& name) {
  if (!is_serving_) return;
  bool is_new = !config_->providers.at(name)->pools.empty() &&
                !pools_.contains({name, config_->providers.at(name)->pools.begin()->first});
  if (is_new) {
    tasks_.Spawn("start pools of " + name.value, StartPools(name));
    deleted_nodes_.ProviderStarted(name);
  }
  scheduler_.Wake();
  min_ready_.Wake();
}

bool Launcher::IsLabelAvailable(const LabelName& label) const {
  for (const auto& [key, worker] : pools_) {
    driver::Provider* provider = worker->provider();
    if (provider == nullptr || !provider->launches_nodes()) continue;
    auto config = worker->pool_config()->labels.find(label);
    if (config == worker->pool_config()->labels.end()) continue;
    bool is_ready = config->second->diskimage
                        ? images_.NewestReadyUpload(*config->second->diskimage, key.provider) != nullptr
                        : provider->LabelReady(*config->second);
    if (is_ready) return true;
  }
  return false;
}

void Launcher::SessionChanged(zk::SessionState state) {
  if (state == zk::SessionState::kSuspended) logger_.Info("ZooKeeper suspended. Waiting");
  if (state == zk::SessionState::kConnected) {
    logger_.Info("ZooKeeper available. Resuming");
    scheduler_.Wake();
  }
  if (state != zk::SessionState::kLost) return;
  logger_.Warning("The ZooKeeper session is lost: dropping everything that was done under its locks");
  for (const auto& [key, worker] : pools_) worker->SessionLost();
  deleted_nodes_.SessionLost();
  lost_requests_.SessionLost();
  min_ready_.SessionLost();
}

bool Launcher::is_ready() const { return is_serving_ && providers_.all_started(); }

Task<> Launcher::Bounded(SteadyTime deadline, std::string what, Task<> step) {
  std::exception_ptr error;
  try {
    co_await WithDeadline(context_.loop, deadline, what, std::move(step));
  } catch (...) {
    error = std::current_exception();
  }
  if (error) logger_.Warning("Stopping: {}", MessageOf(error));
}

Task<> Launcher::Stop() {
  if (std::exchange(is_serving_, false)) logger_.Info("Stopping");
  session_.Reset();
  SteadyTime deadline = context_.loop.SteadyNow() + options_.intervals.graceful_stop;
  co_await Bounded(deadline, "ending the start", tasks_.Stop());
  co_await Bounded(deadline, "ending min-ready requests", min_ready_.Stop());
  co_await Bounded(deadline, "ending clean-up", cleanup_.Stop());
  co_await Bounded(deadline, "ending resets", lost_requests_.Stop());
  co_await Bounded(deadline, "ending decisions", scheduler_.Stop());
  for (const auto& [key, worker] : pools_) co_await Bounded(deadline, "giving requests back", worker->Stop());
  co_await Bounded(deadline, "ending deletions", deleted_nodes_.Stop());
  co_await Bounded(deadline, "stopping providers", providers_.Stop());
  co_await Bounded(deadline, "removing the announcement", entry_.Unregister());
  co_await images_.Stop();
  co_await request_locks_.Stop();
  co_await requests_.Stop();
  co_await nodes_.Stop();
  co_await registry_.Stop();
}

}  // namespace nodepool::launcher
