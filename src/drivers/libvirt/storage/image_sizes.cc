#include "drivers/libvirt/storage/image_sizes.h"

#include <algorithm>

#include "async/attempt.h"
#include "drivers/libvirt/host/host.h"
#include "drivers/libvirt/storage/unfinished.h"

namespace nodepool::drivers::libvirt {

Task<bool> ImageSizes::Refresh(std::vector<Host*> hosts) {
  const Sizes before = sizes_;
  bool was_known = is_known_;
  for (Host* host : hosts) {
    for (const auto& [name, image] : config_.cloud_images) {
      if (!image.path) co_await RefreshOne(*host, image.external_name);
    }
    is_known_ = true;
  }
  co_return is_known_ != was_known || sizes_ != before;
}

Task<> ImageSizes::Known(std::vector<Host*> hosts) {
  if (!is_known_) co_await Refresh(std::move(hosts));
}

Task<> ImageSizes::RefreshOne(Host& host, std::string volume) {
  if (host.fault()) co_return;
  Outcome<VolumeInfo> found = co_await Attempt(host.Use().Volume(volume));
  bool is_complete = co_await HasImage(host, volume);
  if (found && !is_complete) co_return;
  if (found) sizes_[volume][host.name()] = found->capacity;
  if (FailedWith(found, Verdict::kNotFound)) sizes_[volume].erase(host.name());
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
