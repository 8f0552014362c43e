#include "builder/image_providers.h"

#include "driver/guarded_provider.h"

namespace nodepool::builder {

ImageProviders::ImageProviders(Context& context, BlockingPool& blocking_pool, driver::Registry& drivers)
    : context_(context),
      blocking_pool_(blocking_pool),
      drivers_(drivers),
      logger_("nodepool.ProviderManager"),
      nodes_(context.loop, context.store.tree.client()),
      retiring_(context.loop, logger_) {}

ImageProviders::~ImageProviders() = default;

void ImageProviders::Configure(const driver::LoadedConfig& config) {
  auto before = std::exchange(providers_, {});
  for (const auto& [name, settings] : config.providers) {
    if (!settings->manages_images) continue;
    auto existing = before.find(name);
    if (existing != before.end() && existing->second->config().fingerprint == settings->fingerprint) {
      providers_[name] = std::move(existing->second);
      before.erase(existing);
      continue;
    }
    driver::ProviderEnvironment environment{context_.loop, context_.random, blocking_pool_, context_.store,
                                            nodes_,        context_.images, [] {}};
    try {
      providers_[name] = driver::CreateGuarded(drivers_, std::move(environment), settings);
    } catch (...) {
      logger_.Error("Provider {} cannot be used until its configuration changes: {}", name,
                    MessageOf(std::current_exception()));
    }
  }
  for (auto& [name, provider] : before) Retire(std::move(provider));
}

void ImageProviders::Retire(std::shared_ptr<driver::Provider> provider) {
  provider->Idle();
  retiring_.Spawn("retire provider " + provider->config().name.value, StopQuietly(provider));
}

// The provider itself waits for the uploads and deletions it carries out.
Task<> ImageProviders::StopQuietly(std::shared_ptr<driver::Provider> provider) {
  std::exception_ptr error;
  try {
    co_await provider->Stop();
  } catch (...) {
    error = std::current_exception();
  }
  if (error) logger_.Error("Error stopping provider {}: {}", provider->config().name, MessageOf(error));
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
