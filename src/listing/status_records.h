#pragma once

#include "listing/configured.h"
#include "listing/waiting_listing.h"
#include "store/cache/caches.h"

namespace nodepool::listing {

// The data of the status screen. The caches that were started are complete.
struct StatusRecords {
  const Configured& configured;
  const store::Caches& caches;
  Reasons why;  // why requests wait
  WallTime now;
};

}  // namespace nodepool::listing
