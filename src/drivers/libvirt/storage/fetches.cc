#include "drivers/libvirt/storage/fetches.h"

#include <set>

#include "drivers/libvirt/host/site.h"
#include "drivers/libvirt/storage/shared_storage.h"

namespace nodepool::drivers::libvirt {

namespace {

// A checksum that is wrong stays so until an operator has mended it.
constexpr Duration kPauseAfterRefusal = std::chrono::minutes(5);
constexpr Duration kPauseAfterFetch = std::chrono::minutes(1);

std::set<std::string> UsedImages(const LibvirtConfig& config) {
  std::set<std::string> used;
  for (const auto& [pool_name, pool] : config.pools) {
    for (const auto& [label_name, label] : pool->labels) {
      if (label->cloud_image && config.cloud_images.at(*label->cloud_image).origin)
        used.insert(*label->cloud_image);
    }
  }
  return used;
}

Task<> FetchTo(Site& site, Host& host, const LibvirtCloudImage& image) {
  Arrivals::Make fetch = [&site, &host, &image] {
    return host.Use().FetchVolume(image.external_name, *image.origin, site.config->image_upload_timeout);
  };
  Task<> arrival = site.arrivals.Ensure(host, image.external_name, std::move(fetch));
  co_await std::move(arrival);
}

}  // namespace

void Fetches::Begin() {
  if (site_.environment.is_for_one_command || site_.tasks.stopping()) return;
  SteadyTime now = site_.environment.loop.SteadyNow();
  for (Host* host : OneOfEachStorage(site_.Usable())) {
    for (const std::string& image : UsedImages(*site_.config)) {
      SteadyTime& next = next_tries_[{host->name(), image}];
      if (now < next) continue;
      next = SteadyTime::max();
      site_.tasks.Spawn("fetch of image " + image, Run(*host, image));
    }
  }
}

Task<> Fetches::Run(Host& host, std::string image) {
  const LibvirtCloudImage wanted = site_.config->cloud_images.at(image);
  Outcome<> fetched = co_await Attempt(FetchTo(site_, host, wanted));
  SteadyTime now = site_.environment.loop.SteadyNow();
  if (!fetched) {
    bool is_refused = FailedWith(fetched, Verdict::kInvalid);
    next_tries_[{host.name(), image}] = now + (is_refused ? kPauseAfterRefusal : kPauseAfterFetch);
    site_.logger.Error("Host {} has no image {}; it is tried again: {}", host.name(), image,
                       fetched.error().message());
    co_return;
  }
  // An operator may delete the volume.
  next_tries_[{host.name(), image}] = now + kPauseAfterFetch;
  bool has_changed = co_await site_.image_sizes.Refresh(site_.Usable());
  if (has_changed) site_.environment.capacity_changed();
}

}  // namespace nodepool::drivers::libvirt
