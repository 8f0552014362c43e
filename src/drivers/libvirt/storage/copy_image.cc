#include "drivers/libvirt/storage/copy_image.h"

#include <fmt/format.h>

#include "drivers/libvirt/storage/unfinished.h"

namespace nodepool::drivers::libvirt {

namespace {

Task<Host*> FindSource(Site& site, std::string image) {
  for (const auto& host : site.hosts) {
    bool is_there = co_await HasImage(*host, image);
    if (is_there) co_return host.get();
  }
  throw Error(Verdict::kNotFound, fmt::format("no host that can be used has image {}", image));
}

// The volume is raw while it is written, whatever the image is: libvirt would write a header of its own
// otherwise.
Task<> CopyImage(Site& site, Host& target, std::string image) {
  Host* source = co_await FindSource(site, image);
  VolumeInfo original = co_await source->Use().Volume(image);
  site.logger.Info("Image {} is copied from host {} to host {}", image, source->name(), target.name());
  NewVolume volume{.name = image, .capacity = original.length};
  co_await target.Use().CreateVolume(std::move(volume));
  co_await target.Use().CopyVolume(source->config(), image, site.config->image_upload_timeout);
}

}  // namespace

Task<> EnsureUpload(Site& site, Host& target, std::string image) {
  // Another host may have put it there, which the target's libvirt finds out when it reads the pool anew.
  if (!target.size().shared_storage.empty()) co_await target.Use().Volumes();
  Arrivals::Make make = [&site, &target, image] { return CopyImage(site, target, image); };
  co_await site.arrivals.Ensure(target, image, std::move(make));
}

}  // namespace nodepool::drivers::libvirt
