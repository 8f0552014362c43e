#pragma once

#include "driver/loading/load_config.h"
#include "listing/configured.h"

namespace nodepool::cli {

// What lists compare the records with.
listing::Configured ConfiguredBy(const driver::LoadedConfig& config);

}  // namespace nodepool::cli
