#pragma once

#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "model/node.h"

namespace nodepool::listing {

struct ConfiguredImage {
  bool is_paused = false;
  Duration rebuild_age{};
  std::string build_log_dir;  // on the builder's host
  // The providers that the image is uploaded to, and their labels that boot from it.
  std::map<ProviderName, std::set<LabelName>> labels;
};

// The parts of the configuration that lists compare the records with.
struct Configured {
  std::map<ProviderName, std::string> drivers;  // every provider
  std::map<PoolKey, Resources> pools;           // every pool with its limits; a missing resource is unlimited
  std::map<PoolKey, std::set<LabelName>> pool_labels;
  std::map<LabelName, int> labels;  // every label with its min-ready
  std::map<ImageName, ConfiguredImage> images;
  std::map<std::string, Resources> tenant_limits;  // by tenant; a missing resource is unlimited
};

}  // namespace nodepool::listing
