#pragma once

#include <map>
#include <string>
#include <vector>

#include "listing/configured.h"
#include "model/component.h"
#include "store/cache/node_cache.h"

// What launchers announce of labels, as it concerns the whole cluster.
namespace nodepool::listing {

// Why labels cannot be launched, by label: the faults of all pools that offer them, "c1 main: no flavor ...".
// A label that a pool offers without a fault is left out.
std::map<LabelName, std::vector<std::string>> FaultsOfLabels(
    const std::map<std::string, Component>& components);

struct LabelShortage {
  int missing = 0;  // min-ready nodes
  WallTime since{};
  std::string why;
};

// The labels of which fewer nodes are free than their min-ready, while launchers fail to get more.
std::map<LabelName, LabelShortage> ShortagesOf(const Configured& configured,
                                               const std::map<std::string, Component>& components,
                                               const store::NodeCache& nodes);

}  // namespace nodepool::listing
