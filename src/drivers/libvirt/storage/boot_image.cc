#include "drivers/libvirt/storage/boot_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "async/task.h"
#include "base/scope_exit.h"
#include "drivers/libvirt/host/host.h"
#include "drivers/libvirt/names.h"
#include "drivers/libvirt/placement/site.h"
#include "drivers/libvirt/storage/images.h"

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

Task<> FetchTo(Arrivals& arrivals, Duration limit, Host& host, const LibvirtCloudImage& image) {
  Arrivals::Make fetch = [limit, &host, &image] {
    return host.Use().FetchVolume(image.external_name, *image.origin, limit);
  };
  Task<> arrival = arrivals.Ensure(host, image.external_name, std::move(fetch));
  co_await std::move(arrival);
}

}  // namespace

void Fetches::Begin() {
  if (!is_started_ || site_.tasks.stopping()) return;
  SteadyTime now = site_.environment.loop.SteadyNow();
  for (Host* host : OneOfEachStorage(site_.hosts.Usable())) {
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
  Outcome<> fetched =
      co_await Attempt(FetchTo(site_.arrivals, site_.config->image_upload_timeout, host, wanted));
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
  bool has_changed = co_await site_.image_sizes.Refresh(site_.hosts.Usable());
  if (has_changed) site_.environment.framework.CapacityChanged();
}

namespace {

constexpr std::chrono::hours kGrace{2};

}  // namespace

Task<> OldFetches::Delete(Host& host, std::vector<VolumeInfo> volumes, SteadyTime now) {
  std::set<std::string> old;
  for (const VolumeInfo& volume : volumes) {
    std::string image(WithoutMark(volume.name));
    if (IsOld(image)) old.insert(std::move(image));
  }
  std::erase_if(since_, [&](const auto& entry) {
    const auto& [name, volume] = entry.first;
    return name == host.name() && !old.contains(volume);
  });
  for (const std::string& volume : old) {
    SteadyTime since = since_.try_emplace({host.name(), volume}, now).first->second;
    if (now - since >= kGrace) co_await DeleteOne(host, volume);
  }
}

bool OldFetches::IsOld(const std::string& volume) const {
  std::optional<FetchedVolume> fetched = ParseFetchedVolume(volume);
  if (!fetched || fetched->provider != config_.name.value) return false;
  return std::ranges::none_of(config_.cloud_images,
                              [&](const auto& entry) { return entry.second.external_name == volume; });
}

Task<> OldFetches::DeleteOne(Host& host, std::string volume) {
  Outcome<> deleted = co_await Attempt(DeleteImageOn(host, volume));
  if (deleted) {
    logger_.Info("Image {} on host {} is deleted: the configuration no longer has it", volume, host.name());
  } else if (!FailedWith(deleted, Verdict::kRetry)) {
    logger_.Warning("Image {} on host {}, which the configuration no longer has, cannot be deleted: {}",
                    volume, host.name(), deleted.error().message());
  }
}

namespace {

// A transfer that writes nothing for so long has been given up by the process that made it.
constexpr Duration kStandstill = std::chrono::minutes(1);

Task<std::uint64_t> WrittenOf(Host& host, std::string image) {
  Outcome<VolumeInfo> volume = co_await Attempt(host.Use().Volume(std::move(image)));
  co_return volume ? volume->allocation : 0;
}

}  // namespace

Task<> Arrivals::Ensure(Host& host, std::string image, Make make) {
  bool is_there = co_await HasImage(host, image);
  if (is_there) co_return;
  std::shared_ptr<Arrival>& entry = arrivals_[{host.name(), image}];
  if (!entry) {
    entry = std::make_shared<Arrival>();
    tasks_.Spawn("arrival of image " + image, Run(host, image, std::move(make), entry));
  }
  std::shared_ptr<Arrival> arrival = entry;
  co_await arrival->has_ended.Wait();
  if (!arrival->outcome) arrival->outcome.error().Rethrow();
}

Task<> Arrivals::Run(Host& host, std::string image, Make make, std::shared_ptr<Arrival> arrival) {
  arrival->outcome = std::unexpected(Failure(Error(Verdict::kCancelled, "the provider was stopped")));
  ScopeExit end([&] {
    arrivals_.erase({host.name(), image});
    arrival->has_ended.Set();
  });
  Task<> making = MakeOrAwait(host, image, std::move(make));
  Outcome<> outcome = co_await Attempt(std::move(making));
  arrival->outcome = std::move(outcome);
}

Task<> Arrivals::MakeOrAwait(Host& host, std::string image, Make make) {
  while (true) {
    Task<> making = MakeImage(host, image, make);
    Outcome<> made = co_await Attempt(std::move(making));
    if (made) co_return;
    if (!FailedWith(made, Verdict::kConflict)) made.error().Rethrow();
    co_await AwaitOther(host, image);
    bool is_there = co_await HasImage(host, image);
    if (is_there) co_return;
  }
}

Task<> Arrivals::AwaitOther(Host& host, std::string image) {
  std::uint64_t before = co_await WrittenOf(host, image);
  co_await tasks_.loop().SleepFor(kStandstill);
  std::uint64_t now = co_await WrittenOf(host, image);
  bool is_there = co_await HasImage(host, image);
  if (is_there || now != before) co_return;
  logger_.Warning("Image {} on host {} was left unfinished and is removed", image, host.name());
  co_await RemoveImage(host, image);
}

Task<bool> HasImage(Host& host, std::string image) {
  if (host.fault()) co_return false;
  Hypervisor& hypervisor = host.Use();
  Outcome<VolumeInfo> volume = co_await Attempt(hypervisor.Volume(image));
  if (!volume) co_return false;
  Outcome<VolumeInfo> mark = co_await Attempt(hypervisor.Volume(MarkOf(image)));
  co_return FailedWith(mark, Verdict::kNotFound);
}

Task<> MakeImage(Host& host, std::string image, std::function<Task<>()> make) {
  NewVolume mark{.name = MarkOf(image)};
  co_await host.Use().CreateVolume(std::move(mark));
  Task<> making = make();
  Outcome<> made = co_await Attempt(std::move(making));
  if (!made) {
    if (!host.fault()) co_await Attempt(RemoveImage(host, image));
    made.error().Rethrow();
  }
  co_await host.Use().DeleteVolume(MarkOf(image));
}

// The mark last: without it what is left would count as complete.
Task<> RemoveImage(Host& host, std::string image) {
  co_await host.Use().DeleteVolume(image);
  co_await host.Use().DeleteVolume(MarkOf(image));
}

}  // namespace nodepool::drivers::libvirt
