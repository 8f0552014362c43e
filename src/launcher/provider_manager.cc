#include "launcher/provider_manager.h"

#include <algorithm>

#include "async/backoff.h"
#include "async/deadline.h"

namespace nodepool::launcher {

ProviderManager::ProviderManager(Context& context, driver::Registry& drivers)
    : context_(context),
      drivers_(drivers),
      logger_("nodepool.ProviderManager"),
      starting_(context.loop, logger_) {}

ProviderManager::~ProviderManager() = default;

void ProviderManager::Start(const driver::LoadedConfig& config,
                            std::function<void(const ProviderName&)> changed) {
  changed_ = std::move(changed);
  for (const auto& [name, provider_config] : config.providers) {
    entries_[name].config = provider_config;
    starting_.Spawn("start provider " + name.value, Bring(name));
  }
}

Task<> ProviderManager::Bring(ProviderName name) {
  Entry& entry = entries_.at(name);
  Backoff backoff({context_.intervals.provider_retry, context_.intervals.provider_retry_max},
                  context_.random);
  while (true) {
    std::exception_ptr error;
    try {
      driver::ProviderEnvironment environment{
          context_.loop,  context_.random, context_.blocking_pool,          context_.store,
          context_.nodes, context_.images, [this, name] { changed_(name); }};
      driver::Driver* driver = drivers_.Find(entry.config->driver);
      entry.provider = driver->CreateProvider(std::move(environment), entry.config);
      SteadyTime deadline = context_.loop.SteadyNow() + context_.intervals.provider_start_timeout;
      co_await WithDeadline(context_.loop, deadline, "starting", entry.provider->Start());
    } catch (...) {
      error = std::current_exception();
    }
    if (error && VerdictOf(error) == Verdict::kCancelled) std::rethrow_exception(error);
    entry.is_tried = true;
    tried_.NotifyAll();
    if (!error) break;
    co_await StopQuietly(name);
    Duration pause = backoff.Next();
    logger_.Error("Error starting provider {}: {}. Next attempt in {} s", name, MessageOf(error),
                  std::chrono::duration_cast<std::chrono::seconds>(pause).count());
    co_await context_.loop.SleepFor(pause);
  }
  entry.is_started = true;
  changed_(name);
}

Task<> ProviderManager::WaitTried() {
  auto is_tried = [](const auto& entry) { return entry.second.is_tried; };
  while (!std::all_of(entries_.begin(), entries_.end(), is_tried)) co_await tried_.Wait();
}

Task<> ProviderManager::Stop() {
  co_await starting_.Stop();
  for (auto& [name, entry] : entries_) {
    entry.is_started = false;
    co_await StopQuietly(name);
  }
}

Task<> ProviderManager::StopQuietly(ProviderName name) {
  driver::Provider* provider = entries_.at(name).provider.get();
  if (provider == nullptr) co_return;
  std::exception_ptr error;
  try {
    co_await provider->Stop();
  } catch (...) {
    error = std::current_exception();
  }
  if (error) logger_.Error("Error stopping provider {}: {}", name, MessageOf(error));
}

driver::Provider* ProviderManager::Find(const ProviderName& name) const {
  auto it = entries_.find(name);
  return it != entries_.end() && it->second.is_started ? it->second.provider.get() : nullptr;
}

bool ProviderManager::all_started() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const auto& entry) { return entry.second.is_started; });
}

std::vector<driver::Provider*> ProviderManager::Running() const {
  std::vector<driver::Provider*> running;
  for (const auto& [name, entry] : entries_) {
    if (entry.is_started) running.push_back(entry.provider.get());
  }
  return running;
}

}  // namespace nodepool::launcher
