#include "builder/image_providers.h"

#include "async/attempt.h"
#include "driver/loading/guarded_provider.h"

namespace nodepool::builder {

ImageProviders::ImageProviders(Context& context, BlockingPool& blocking_pool, driver::Registry& drivers)
    : context_(context),
      blocking_pool_(blocking_pool),
      drivers_(drivers),
      logger_("nodepool.ProviderManager"),
      nodes_(context.loop, context.store.tree.client()),
      records_{context.store, nodes_, context.images},
      retiring_(context.loop, logger_) {}

ImageProviders::~ImageProviders() = default;

void ImageProviders::Configure(const driver::LoadedConfig& config) {
  auto before = std::exchange(providers_, {});
  for (const auto& [name, settings] : config.providers) {
    if (!settings->manages_images) continue;
    auto existing = before.find(name);
    bool is_same =
        existing != before.end() && existing->second->config().fingerprint == settings->fingerprint;
    // One whose cloud cannot be used any more, as the files are now, goes on with what it has.
    if (existing != before.end() && (is_same || !settings->fault.empty())) {
      providers_[name] = std::move(existing->second);
      before.erase(existing);
      continue;
    }
    driver::ProviderEnvironment environment{context_.loop, context_.random, blocking_pool_, records_, [] {}};
    try {
      providers_[name] = driver::CreateGuarded(drivers_, std::move(environment), settings);
    } catch (const std::exception& error) {
      logger_.Error("Provider {} cannot be used until its configuration changes: {}", name, error.what());
    }
  }
  for (auto& [name, provider] : before) Retire(std::move(provider));
}

void ImageProviders::Retire(std::shared_ptr<driver::Provider> provider) {
  provider->Idle();
  retiring_.Spawn("retire provider " + provider->config().name.value, StopQuietly(provider));
}

// The provider itself waits for its uploads and deletions.
Task<> ImageProviders::StopQuietly(std::shared_ptr<driver::Provider> provider) {
  Outcome<> stopped = co_await Attempt(provider->Stop());
  if (!stopped) {
    logger_.Error("Error stopping provider {}: {}", provider->config().name, stopped.error().message());
  }
}

Task<> ImageProviders::Stop() {
  for (auto& [name, provider] : providers_) Retire(std::move(provider));
  providers_.clear();
  co_await retiring_.Join();
}

std::shared_ptr<driver::Provider> ImageProviders::Find(const ProviderName& name) const {
  auto found = providers_.find(name);
  return found == providers_.end() ? nullptr : found->second;
}

}  // namespace nodepool::builder
