#include "builder/image_providers.h"

#include "async/task.h"
#include "driver/loading/load_drivers.h"

namespace nodepool::builder {

ImageProviders::ImageProviders(Context& context, BlockingPool& blocking_pool, driver::Registry& drivers)
    : context_(context),
      blocking_pool_(blocking_pool),
      drivers_(drivers),
      logger_("nodepool.ProviderManager"),
      retiring_(context.loop, logger_) {}

ImageProviders::~ImageProviders() = default;

void ImageProviders::Configure(const driver::LoadedConfig& config) {
  auto before = std::exchange(stores_, {});
  for (const auto& [name, settings] : config.providers) {
    if (!settings->manages_images) continue;
    auto existing = before.find(name);
    bool is_same =
        existing != before.end() && existing->second->config().fingerprint == settings->fingerprint;
    // One whose cloud cannot be used any more, as the files are now, goes on with what it has.
    if (existing != before.end() && (is_same || !settings->fault.empty())) {
      stores_[name] = std::move(existing->second);
      before.erase(existing);
      continue;
    }
    driver::DriverEnvironment environment{context_.loop, context_.random, blocking_pool_};
    try {
      stores_[name] = driver::CreateImageStore(drivers_, environment, settings);
    } catch (const std::exception& error) {
      logger_.Error("Provider {} cannot be used until its configuration changes: {}", name, error.what());
    }
  }
  for (auto& [name, store] : before) Retire(std::move(store));
}

void ImageProviders::Retire(std::shared_ptr<driver::ImageStore> store) {
  retiring_.Spawn("retire provider " + store->config().name.value, StopQuietly(store));
}

// The store itself waits for its uploads and deletions.
Task<> ImageProviders::StopQuietly(std::shared_ptr<driver::ImageStore> store) {
  Outcome<> stopped = co_await Attempt(store->Stop());
  if (!stopped) {
    logger_.Error("Error stopping provider {}: {}", store->config().name, stopped.error().message());
  }
}

Task<> ImageProviders::Stop() {
  for (auto& [name, store] : stores_) Retire(std::move(store));
  stores_.clear();
  co_await retiring_.Join();
}

std::shared_ptr<driver::ImageStore> ImageProviders::Find(const ProviderName& name) const {
  auto found = stores_.find(name);
  return found == stores_.end() ? nullptr : found->second;
}

}  // namespace nodepool::builder
