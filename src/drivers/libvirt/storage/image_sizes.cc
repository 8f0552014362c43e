#include "drivers/libvirt/storage/image_sizes.h"

#include <algorithm>

#include "async/attempt.h"
#include "drivers/libvirt/host/host.h"
#include "drivers/libvirt/names/volume_name.h"
#include "drivers/libvirt/storage/boot_image.h"

namespace nodepool::drivers::libvirt {

Task<bool> ImageSizes::Refresh(std::vector<Host*> hosts) {
  const Sizes before = sizes_;
  bool was_known = is_known_;
  for (Host* host : hosts) {
    if (!host->fault() && HasVolumes()) co_await RefreshOne(*host);
    is_known_ = true;
  }
  co_return is_known_ != was_known || sizes_ != before;
}

Task<> ImageSizes::Known(std::vector<Host*> hosts) {
  if (!is_known_) co_await Refresh(std::move(hosts));
}

bool ImageSizes::HasVolumes() const {
  return std::ranges::any_of(config_.cloud_images, [](const auto& entry) { return !entry.second.path; });
}

// One call, however many images there are.
Task<> ImageSizes::RefreshOne(Host& host) {
  Outcome<std::vector<VolumeInfo>> listed = co_await Attempt(host.Use().Volumes());
  if (!listed) co_return;
  std::map<std::string, VolumeInfo> volumes;
  for (VolumeInfo& info : *listed) volumes[info.name] = std::move(info);
  for (const auto& [name, image] : config_.cloud_images) {
    if (image.path) continue;
    const std::string& volume = image.external_name;
    bool is_complete = volumes.contains(volume) && !volumes.contains(MarkOf(volume));
    if (is_complete) {
      const VolumeInfo& info = volumes[volume];
      sizes_[volume][host.name()] = SizeOfDisk(info, image.format.value_or(info.format));
    } else {
      sizes_[volume].erase(host.name());
    }
  }
}

std::optional<std::uint64_t> ImageSizes::Find(const std::string& volume) const {
  auto found = sizes_.find(volume);
  if (found == sizes_.end() || found->second.empty()) return std::nullopt;
  std::uint64_t largest = 0;
  for (const auto& [host, size] : found->second) largest = std::max(largest, size);
  return largest;
}

bool ImageSizes::IsOn(const std::string& host, const std::string& volume) const {
  auto found = sizes_.find(volume);
  return found != sizes_.end() && found->second.contains(host);
}

}  // namespace nodepool::drivers::libvirt
