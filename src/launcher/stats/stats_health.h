#pragma once

#include "base/metrics/metrics.h"
#include "listing/configured.h"
#include "model/component.h"
#include "store/cache/image_cache.h"
#include "store/cache/node_cache.h"

namespace nodepool::launcher {

// Reports which labels and images are not as the configuration wants them, and which daemons have rejected
// their configuration. Other launchers report the same of what they know.
void ReportHealth(const listing::Configured& configured, const std::map<std::string, Component>& components,
                  const store::NodeCache& nodes, const store::ImageCache& images, WallTime now,
                  metrics::Sink& to);

}  // namespace nodepool::launcher
