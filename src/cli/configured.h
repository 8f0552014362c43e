#pragma once

#include "driver/loading/load_config.h"
#include "listing/configured.h"

namespace nodepool::cli {

// The parts of the configuration that lists compare the records with.
listing::Configured ConfiguredBy(const driver::LoadedConfig& config);

}  // namespace nodepool::cli
