#pragma once

#include <string>

#include "async/loop.h"
#include "driver/loading/load_config.h"
#include "operate/refusal.h"
#include "store/store.h"

// The switch by which operators pause providers, by the command line and over HTTP (http-actions.md 1).
namespace nodepool::operate {

// Pauses the provider; one that is paused already gets this record. The time is set here. kNotFound: no such
// provider is configured.
Task<Done> PauseProvider(Loop& loop, store::Store& store, const driver::LoadedConfig& config,
                         ProviderName provider, ProviderPause pause);
// Also of a provider that is not configured any more. kNotFound: it is not paused.
Task<Done> UnpauseProvider(store::Store& store, ProviderName provider);

}  // namespace nodepool::operate
