#pragma once

#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/ids.h"

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
  std::set<PoolKey> pools;
  std::map<LabelName, int> labels;  // every label with its min-ready
  std::map<ImageName, ConfiguredImage> images;
};

}  // namespace nodepool::listing
