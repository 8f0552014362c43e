#include "launcher/provider_manager.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "async/backoff.h"
#include "async/deadline.h"
#include "async/task.h"
#include "base/error.h"
#include "driver/loading/load_drivers.h"
#include "launcher/stats/stats_metrics.h"

namespace nodepool::launcher {

namespace {

// The smaller, the more it matters to operators.
int WeightOf(ProviderState state) {
  switch (state) {
    case ProviderState::kFailing:
      return 0;
    case ProviderState::kUp:
      return 1;
    case ProviderState::kStarting:
      return 2;
    case ProviderState::kDraining:
      break;
  }
  return 3;
}

void Adopt(ProviderStatus& status, const ProviderReport& report) {
  status.state = report.state;
  status.since = report.since;
  status.is_draining = report.state == ProviderState::kDraining;
  status.limit = report.limit;
  status.health.is_up = status.health.was_up = report.state == ProviderState::kUp;
  status.health.since = report.since;
  status.health.fault = report.fault;
}

void AddLauncher(ProviderStatus& status, const std::string& hostname) {
  auto place = std::ranges::lower_bound(status.launchers, hostname);
  if (place == status.launchers.end() || *place != hostname) status.launchers.insert(place, hostname);
}

PoolStatus PoolOf(const Component& component, const ProviderStatus& provider, const store::NodeCache& nodes) {
  PoolStatus pool;
  pool.name = component.name.value_or(PoolName());
  pool.launcher = component.id;
  pool.is_registered = true;
  pool.is_waiting = component.is_paused;
  pool.priority = static_cast<int>(component.priority);
  PoolKey key{component.provider_name, pool.name};
  pool.used = nodes.UsedBy(key);
  bool is_available = provider.health.is_up && !provider.pause;
  for (const LabelName& label : component.supported_labels) {
    auto fault = component.label_faults.find(label);
    bool is_faulty = fault != component.label_faults.end();
    pool.labels.push_back({label, is_available && !is_faulty, nodes.FreeNodes(key, label).size(),
                           is_faulty ? std::optional(fault->second) : std::nullopt});
  }
  return pool;
}

void CountNodes(ProviderStatus& status, const store::NodeCache& nodes) {
  std::map<PoolName, std::map<std::string_view, int>> by_pool;
  for (const NodeId& id : nodes.OfProvider(status.name)) {
    const Node& node = nodes.Find(id)->record;
    std::string_view state = node.state ? ToString(*node.state) : "";
    ++status.nodes[state];
    ++by_pool[node.pool][state];
  }
  status.used = nodes.UsedBy(status.name);
  for (PoolStatus& pool : status.pools) pool.nodes = std::move(by_pool[pool.name]);
}

}  // namespace

std::vector<std::pair<BreakerKey, Breaker>> OpenBreakersOf(const store::RecordCache<Breaker>& breakers,
                                                           const ProviderName& provider) {
  std::vector<std::pair<BreakerKey, Breaker>> open;
  const auto& all = breakers.all();
  for (auto it = all.lower_bound(BreakerKey{provider}); it != all.end() && it->first.provider == provider;
       ++it)
    open.emplace_back(it->first, it->second);
  return open;
}

std::map<ProviderName, ProviderStatus> AnnouncedProviders(const store::Caches& records) {
  std::map<ProviderName, ProviderStatus> providers;
  auto provider_of = [&](const ProviderName& name) -> ProviderStatus& {
    auto [entry, is_new] = providers.try_emplace(name);
    if (is_new) {
      entry->second.name = name;
      entry->second.is_own = false;
      // A launcher of the Python implementation announces pools of providers that it can use, and no state.
      ProviderReport usable;
      usable.state = ProviderState::kUp;
      Adopt(entry->second, usable);
      if (const ProviderPause* pause = records.pauses.Find(name)) entry->second.pause = *pause;
      entry->second.breakers = OpenBreakersOf(records.breakers, name);
    }
    return entry->second;
  };
  std::set<ProviderName> reported;
  for (const auto& [path, component] : records.components.all()) {
    for (const auto& [name, report] : component.providers) {
      ProviderStatus& status = provider_of(name);
      AddLauncher(status, component.hostname);
      bool is_first = reported.insert(name).second;
      if (is_first || WeightOf(report.state) < WeightOf(status.state)) Adopt(status, report);
    }
  }
  for (const Component* component : records.components.Pools()) {
    ProviderStatus& status = provider_of(component->provider_name);
    AddLauncher(status, component->hostname);
    PoolName name = component->name.value_or(PoolName());
    if (std::ranges::find(status.pools, name, &PoolStatus::name) == status.pools.end())
      status.pools.push_back(PoolOf(*component, status, records.nodes));
  }
  for (auto& [name, status] : providers) {
    std::ranges::sort(status.pools, {}, &PoolStatus::name);
    CountNodes(status, records.nodes);
  }
  return providers;
}

namespace {

// A driver whose causes differ each time must not fill the memory.
constexpr std::size_t kMaxCauses = 16;

}  // namespace

HealthRecord::HealthRecord(Loop& loop, ProviderName name, log::Logger logger)
    : loop_(loop), name_(std::move(name)), logger_(std::move(logger)) {
  now_.since = loop_.Now();
}

bool HealthRecord::Failed(const std::string& what, driver::ProviderFault fault) {
  // It becomes a part of sentences.
  while (fault.cause.ends_with('.')) fault.cause.pop_back();
  Log(what, fault);
  bool was_failing = !now_.fault.empty();
  bool is_new = WithoutRequestIds(now_.fault) != WithoutRequestIds(fault.cause);
  is_new |= std::exchange(now_.is_away, fault.is_outage) != fault.is_outage;
  now_.is_up = false;
  if (!was_failing) now_.since = loop_.Now();
  if (is_new) now_.fault = std::move(fault.cause);
  now_.next_attempt = fault.next_attempt;
  return is_new;
}

bool HealthRecord::Succeeded() {
  if (now_.is_up) return false;
  if (!now_.fault.empty()) logger_.Info("Provider {} can be used again", name_);
  logged_.clear();
  now_ = {.is_up = true, .was_up = true, .since = loop_.Now()};
  return true;
}

void HealthRecord::Log(const std::string& what, const driver::ProviderFault& fault) {
  std::string again;
  if (fault.next_attempt) {
    auto pause = std::chrono::round<std::chrono::seconds>(*fault.next_attempt - loop_.SteadyNow());
    again = fmt::format("; tried again in {} s", pause.count());
  }
  if (logged_.size() >= kMaxCauses) logged_.clear();
  bool is_new = logged_.insert(WithoutRequestIds(fault.cause)).second;
  log::Level level = is_new ? log::Level::kError : log::Level::kDebug;
  logger_.Write(level, fmt::format("{}: {}{}", what, fault.cause, again));
}

ProviderManager::ProviderManager(Context& context, driver::Registry& drivers)
    : context_(context),
      drivers_(drivers),
      logger_("nodepool.ProviderManager"),
      observer_(context.metrics, &context.breakers),
      records_{context.store, context.caches.nodes, context.caches.images, &context.caches.requests,
               &context.caches.components},
      retiring_(context.loop, logger_) {}

ProviderManager::~ProviderManager() = default;

void ProviderManager::Configure(const driver::LoadedConfig& config) {
  for (const auto& [name, provider_config] : config.providers) {
    std::shared_ptr<Generation> before;
    if (auto existing = current_.find(name); existing != current_.end()) before = existing->second;
    if (before) {
      before->draining_since.reset();
      if (before->config->fingerprint == provider_config->fingerprint) continue;
      if (!provider_config->fault.empty() && before->config->fault.empty()) {
        logger_.Error(
            "The changed configuration of provider {} cannot be used, it keeps the previous one: {}", name,
            provider_config->fault);
        continue;
      }
      logger_.Info("The configuration of provider {} changed: replacing it", name);
      before->Idle();
    }
    Bring(name, provider_config);
    if (before) Retire(std::move(before));
  }
}

void ProviderManager::Drain(const ProviderName& name) {
  auto existing = current_.find(name);
  if (existing != current_.end()) existing->second->draining_since = context_.loop.Now();
}

void ProviderManager::Remove(const ProviderName& name) {
  auto existing = current_.find(name);
  if (existing == current_.end()) return;
  logger_.Info("Provider {} is not configured any more: stopping it", name);
  std::shared_ptr<Generation> generation = std::move(existing->second);
  current_.erase(existing);
  tried_.NotifyAll();
  generation->Idle();
  Retire(std::move(generation));
}

void ProviderManager::Bring(const ProviderName& name, std::shared_ptr<const driver::ProviderConfig> config) {
  auto generation = std::make_shared<Generation>(context_.loop, std::move(config), logger_);
  current_[name] = generation;
  generation->starting.Spawn("start provider " + name.value, KeepStarting(generation));
}

Task<> ProviderManager::KeepStarting(std::shared_ptr<Generation> generation) {
  const ProviderName& name = generation->config->name;
  Backoff backoff({context_.intervals.provider_retry, context_.intervals.provider_retry_max},
                  context_.random);
  while (true) {
    Outcome<> started = co_await Attempt(StartOnce(generation));
    generation->is_tried = true;
    tried_.NotifyAll();
    if (started) break;
    context_.metrics.Add(stats::kProviderStartFailures, {generation->config->name.value});
    SteadyTime next_attempt = context_.loop.SteadyNow() + backoff.Next();
    driver::ProviderFault fault{started.error().message(), next_attempt};
    bool is_new =
        generation->health.Failed(fmt::format("Error starting provider {}", name), std::move(fault));
    if (is_new) listener_.health_changed();
    co_await StopQuietly(std::exchange(generation->provider, nullptr));
    co_await context_.loop.SleepUntil(next_attempt);
  }
  generation->is_running = true;
  UpdateHealth(*generation);
  listener_.started(name);
}

Task<> ProviderManager::StartOnce(std::shared_ptr<Generation> generation) {
  generation->reported.reset();
  generation->notices.clear();
  ProviderName name = generation->config->name;
  driver::ProviderEnvironment environment{{context_.loop, context_.random, context_.blocking_pool},
                                          records_,
                                          [this, name] { listener_.capacity_changed(name); },
                                          &observer_};
  // Weak, since the generation owns the provider that keeps these callbacks.
  environment.report_fault =
      [this, reporting = std::weak_ptr(generation)](const std::optional<driver::ProviderFault>& fault) {
        std::shared_ptr<Generation> generation = reporting.lock();
        if (!generation) return;
        generation->reported = fault;
        if (generation->is_running) UpdateHealth(*generation);
      };
  environment.report_notices = [this,
                                reporting = std::weak_ptr(generation)](std::vector<std::string> notices) {
    std::shared_ptr<Generation> generation = reporting.lock();
    if (!generation || generation->notices == notices) return;
    generation->notices = std::move(notices);
    if (generation->is_running) listener_.health_changed();
  };
  environment.runner = &runner_;
  generation->provider = driver::CreateGuarded(drivers_, std::move(environment), generation->config);
  SteadyTime deadline = context_.loop.SteadyNow() + context_.intervals.provider_start_timeout;
  co_await WithDeadline(context_.loop, deadline, "starting", generation->provider->Start());
}

// A provider that runs is as its driver last reported.
void ProviderManager::UpdateHealth(Generation& generation) {
  bool is_new = generation.reported ? generation.health.Failed(
                                          fmt::format("Provider {} cannot be used", generation.config->name),
                                          *generation.reported)
                                    : generation.health.Succeeded();
  if (is_new) listener_.health_changed();
}

void ProviderManager::Retire(std::shared_ptr<Generation> generation) {
  retiring_.Spawn("retire provider " + generation->config->name.value, StopGeneration(generation));
}

Task<> ProviderManager::StopGeneration(std::shared_ptr<Generation> generation) {
  co_await generation->starting.Stop();
  while (!IsTried(generation->config->name)) co_await tried_.Wait();
  co_await StopQuietly(generation->provider);
}

// The provider itself waits for its launches and deletions.
Task<> ProviderManager::StopQuietly(std::shared_ptr<driver::Provider> provider) {
  if (!provider) co_return;
  Outcome<> stopped = co_await Attempt(provider->Stop());
  if (!stopped) {
    logger_.Error("Error stopping provider {}: {}", provider->config().name, stopped.error().message());
  }
}

bool ProviderManager::IsTried(const ProviderName& name) const {
  auto generation = current_.find(name);
  return generation == current_.end() || generation->second->is_tried;
}

Task<> ProviderManager::AwaitFirstAttempts() {
  auto is_tried = [this](const auto& entry) { return IsTried(entry.first); };
  while (!std::all_of(current_.begin(), current_.end(), is_tried)) co_await tried_.Wait();
}

Task<> ProviderManager::Stop() {
  std::map<ProviderName, std::shared_ptr<Generation>> retired = std::exchange(current_, {});
  tried_.NotifyAll();
  for (auto& [name, generation] : retired) {
    generation->Idle();
    Retire(std::move(generation));
  }
  co_await retiring_.Join();
}

std::shared_ptr<driver::Provider> ProviderManager::Find(const ProviderName& name) const {
  auto found = current_.find(name);
  return found != current_.end() && found->second->is_running ? found->second->provider : nullptr;
}

std::vector<ProviderName> ProviderManager::Managed() const {
  std::vector<ProviderName> names;
  for (const auto& [name, generation] : current_) names.push_back(name);
  return names;
}

ProviderReport ProviderManager::ReportOf(const ProviderName& name) const {
  const Generation& generation = *current_.at(name);
  const ProviderHealth& health = generation.health.now();
  ProviderReport report{.since = health.since, .fault = health.fault};
  if (health.is_up) report.state = ProviderState::kUp;
  if (!report.fault.empty()) report.state = ProviderState::kFailing;
  if (generation.draining_since) {
    report.state = ProviderState::kDraining;
    report.since = *generation.draining_since;
  }
  if (!generation.is_running) return report;
  report.notices = generation.notices;
  try {
    report.limit = generation.provider->AvailableQuota().resources();
  } catch (...) {
    // The limit is not known.
  }
  std::erase_if(report.limit, [](const auto& entry) { return !std::isfinite(entry.second); });
  return report;
}

bool ProviderManager::all_up() const {
  return std::all_of(current_.begin(), current_.end(),
                     [](const auto& entry) { return entry.second->health.now().is_up; });
}

std::vector<std::shared_ptr<driver::Provider>> ProviderManager::Running() const {
  std::vector<std::shared_ptr<driver::Provider>> running;
  for (const auto& [name, generation] : current_) {
    if (generation->is_running) running.push_back(generation->provider);
  }
  return running;
}

}  // namespace nodepool::launcher
