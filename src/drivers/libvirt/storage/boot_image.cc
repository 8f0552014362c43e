#include "drivers/libvirt/storage/boot_image.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/attempt.h"
#include "drivers/libvirt/host/host.h"
#include "drivers/libvirt/names.h"

namespace nodepool::drivers::libvirt {

namespace {

// A guest or an image's author could otherwise have QEMU open any file of the host. Of a raw image QEMU reads
// no header, so what libvirt has found in one does not matter.
void CheckBootable(const VolumeInfo& volume, const std::string& format) {
  if (format == "raw") return;
  if (format != "qcow2") {
    throw Error(Verdict::kInvalid,
                fmt::format("volume {} has the format {}; expected qcow2 or raw", volume.name, format));
  }
  if (volume.backing_path.empty()) return;
  throw Error(Verdict::kInvalid,
              fmt::format("volume {} has a backing file; an image must be complete", volume.name));
}

// As it was uploaded: what a raw image begins with does not make it something else.
std::string FormatOfUpload(const VolumeInfo& volume) {
  std::optional<ImageVolume> upload = ParseImageVolume(volume.name);
  return upload ? upload->format : volume.format;
}

}  // namespace

std::uint64_t SizeOfDisk(const VolumeInfo& volume, const std::string& format) {
  return format == "raw" && volume.length != 0 ? volume.length : volume.capacity;
}

std::optional<std::string> VolumeOf(const LibvirtConfig& config, const driver::LabelConfig& label,
                                    const std::optional<std::string>& image_external_id) {
  if (label.diskimage) return image_external_id;
  const LibvirtCloudImage& image = config.cloud_images.at(*label.cloud_image);
  return image.path ? std::nullopt : std::optional(image.external_name);
}

Task<BootImage> FindBootImage(Hypervisor& host, const LibvirtConfig& config,
                              const driver::cloud::CreateParameters& parameters) {
  const driver::LabelConfig& label = *parameters.label;
  const LibvirtCloudImage* image = label.cloud_image ? &config.cloud_images.at(*label.cloud_image) : nullptr;
  std::optional<std::string> name = VolumeOf(config, label, parameters.image_external_id);
  if (!name) {
    if (image == nullptr) throw Error(Verdict::kNotFound, "the label's image has no upload");
    co_return BootImage{{*image->path, *image->format}, 0};
  }
  VolumeInfo volume = co_await host.Volume(*name);
  std::string format = image != nullptr ? image->format.value_or(volume.format) : FormatOfUpload(volume);
  CheckBootable(volume, format);
  co_return BootImage{{volume.path, format}, SizeOfDisk(volume, format), volume.modified};
}

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
