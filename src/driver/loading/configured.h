#pragma once

#include "driver/loading/load_config.h"
#include "listing/configured.h"

namespace nodepool::driver {

// The parts of the configuration that lists compare the records with.
listing::Configured ConfiguredBy(const LoadedConfig& config);

}  // namespace nodepool::driver
