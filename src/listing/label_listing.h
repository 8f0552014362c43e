#pragma once

#include "listing/configured.h"
#include "listing/listing.h"
#include "model/component.h"
#include "store/cache/image_cache.h"
#include "store/cache/node_cache.h"
#include "store/cache/request_cache.h"

namespace nodepool::listing {

std::vector<Column> LabelColumns();

// `label-list`: a row for each label that is configured, offered by a registered pool, or on a node, by name.
// A node with several labels counts for each.
Listing ListLabels(const Configured& configured, const std::map<std::string, Component>& components,
                   const store::NodeCache& nodes, const store::RequestCache& requests,
                   const store::ImageCache& images, WallTime now);

}  // namespace nodepool::listing
