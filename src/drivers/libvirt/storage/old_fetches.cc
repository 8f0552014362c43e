#include "drivers/libvirt/storage/old_fetches.h"

#include <algorithm>
#include <set>

#include "async/attempt.h"
#include "drivers/libvirt/names/volume_name.h"
#include "drivers/libvirt/storage/images.h"

namespace nodepool::drivers::libvirt {

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

}  // namespace nodepool::drivers::libvirt
