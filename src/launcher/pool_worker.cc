#include "launcher/pool_worker.h"

#include "base/scope_exit.h"

namespace nodepool::launcher {
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
