#include "operate/providers.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nodepool::operate {

Task<Done> PauseProvider(Loop& loop, store::Store& store, const driver::LoadedConfig& config,
                         ProviderName provider, ProviderPause pause) {
  if (!config.providers.contains(provider))
    co_return NotFound(fmt::format("{} is not one of the configured providers", Excerpt(provider.value)));
  pause.paused_time = loop.Now();
  co_await store.provider_pauses.Pause(std::move(provider), std::move(pause));
  co_return Done();
}

Task<Done> UnpauseProvider(store::Store& store, ProviderName provider) {
  std::string unknown = fmt::format("Provider {} is not paused", Excerpt(provider.value));
  bool was_paused = false;
  if (!provider.empty()) was_paused = co_await store.provider_pauses.Unpause(std::move(provider));
  if (!was_paused) co_return NotFound(std::move(unknown));
  co_return Done();
}

}  // namespace nodepool::operate
