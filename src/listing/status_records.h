#pragma once

#include <map>
#include <string>

#include "listing/configured.h"
#include "listing/daemon_listing.h"
#include "listing/waiting_listing.h"
#include "model/component.h"
#include "store/cache/image_cache.h"
#include "store/cache/node_cache.h"
#include "store/cache/pause_cache.h"
#include "store/cache/request_cache.h"

namespace nodepool::listing {

// The data of the status screen. The caches are complete.
struct StatusRecords {
  const Configured& configured;
  const std::map<std::string, Component>& components;
  const store::NodeCache& nodes;
  const store::RequestCache& requests;
  const store::ImageCache& images;
  const store::PauseCache& pauses;
  Reasons why;  // why requests wait
  PageOf page_of;
  WallTime now;
};

}  // namespace nodepool::listing
