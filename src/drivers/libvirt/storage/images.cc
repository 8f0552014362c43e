#include "drivers/libvirt/storage/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "async/deadline.h"
#include "async/event.h"
#include "async/task.h"
#include "base/text.h"
#include "driver/cloud/metadata.h"
#include "drivers/libvirt/machine/boot.h"
#include "drivers/libvirt/names.h"
#include "drivers/libvirt/storage/boot_image.h"

namespace nodepool::drivers::libvirt {

using driver::ImageUploadParameters;
using driver::ListedImage;

namespace {

constexpr Duration kRemoveLimit = std::chrono::seconds(30);
constexpr int kMostAtATime = 2;  // hosts

std::string VolumeNameOf(const std::string& provider, const ImageUploadParameters& upload) {
  auto text = [&](const char* key) {
    const boost::json::value* value = upload.metadata.if_contains(key);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
  };
  ImageVolume volume{provider, text(driver::cloud::kBuildKey), text(driver::cloud::kUploadKey),
                     upload.format};
  if (volume.build.empty() || volume.upload.empty()) {
    throw Error(Verdict::kInvalid,
                "the upload has no build and upload in its metadata, of which its volume's name "
                "is made");
  }
  return NameOf(volume);
}

std::uint64_t SizeOf(const std::string& path) {
  std::error_code fault;
  std::uintmax_t size = std::filesystem::file_size(path, fault);
  if (fault) throw Error(Verdict::kFail, fmt::format("{} cannot be read: {}", path, fault.message()));
  return size;
}

// The volume is raw while it is written, whatever the file is: libvirt would write a header of its own
// otherwise.
Task<> Send(Host& host, const ImageUploadParameters& upload, std::string name) {
  NewVolume volume{.name = name, .capacity = SizeOf(upload.filename)};
  co_await host.Use().CreateVolume(std::move(volume));
  std::string sha256 = co_await host.Use().UploadVolume(std::move(name), upload.filename, upload.timeout);
  if (!upload.sha256 || *upload.sha256 == sha256) co_return;
  throw Error(Verdict::kFail, fmt::format("{} has the SHA-256 {}, but its build has {}", upload.filename,
                                          sha256, *upload.sha256));
}

Task<> UploadTo(Host& host, const ImageUploadParameters& upload, std::string name) {
  co_await RemoveImage(host, name);  // what an earlier try has left
  std::function<Task<>()> send = [&] { return Send(host, upload, name); };
  Task<> making = MakeImage(host, name, std::move(send));
  co_await std::move(making);
}

// An upload to several hosts; what each has come to.
struct Uploads {
  Gate gate{kMostAtATime};
  std::map<Host*, Outcome<>> ends;
};

Task<> UploadInTurn(Host& host, const ImageUploadParameters& upload, std::string name, Uploads& uploads) {
  Gate::Pass pass = co_await uploads.gate.Enter();
  Outcome<> end = co_await Attempt(UploadTo(host, upload, std::move(name)));
  uploads.ends.insert_or_assign(&host, std::move(end));
}

// A host that was lost meanwhile gets the image from another one when a machine needs it there.
void CheckUploads(const log::Logger& logger, const std::string& name, const Uploads& uploads) {
  const Failure* loss = nullptr;
  bool is_somewhere = false;
  for (const auto& [host, end] : uploads.ends) {
    if (end) {
      is_somewhere = true;
    } else if (FailedWith(end, Verdict::kRetry)) {
      loss = &end.error();
      logger.Warning("Host {} did not get image {}: {}", host->name(), name, loss->message());
    } else {
      end.error().Rethrow();
    }
  }
  if (!is_somewhere && loss != nullptr) loss->Rethrow();
}

Task<> UploadToAll(Loop& loop, log::Logger logger, std::vector<Host*> hosts,
                   const ImageUploadParameters& upload, std::string name) {
  co_await upload.announce(name);
  Uploads uploads;
  TaskGroup tasks(loop, logger);
  for (Host* host : hosts) {
    tasks.Spawn("upload of image " + name, UploadInTurn(*host, upload, name, uploads));
  }
  auto stop = [&tasks] { return tasks.Stop(); };
  co_await WithCleanup(tasks.Join(), stop);
  CheckUploads(logger, name, uploads);
}

Task<> Remove(Loop& loop, log::Logger logger, std::vector<Host*> hosts, std::string name) {
  for (Host* host : hosts) {
    SteadyTime deadline = loop.SteadyNow() + kRemoveLimit;
    Task<> removal = WithDeadline(loop, deadline, "removing the image", RemoveImage(*host, name));
    Outcome<> removed = co_await Attempt(std::move(removal));
    if (!removed) {
      logger.Error("Volume {}, whose upload failed, is left on host {}: {}", name, host->name(),
                   removed.error().message());
    }
  }
}

void WarnOfOthers(const Hosts& hosts, const log::Logger& logger, const std::string& name) {
  for (const auto& host : hosts) {
    if (!host->fault()) continue;
    logger.Warning("Host {} did not get image {}, and gets it when a machine needs it there: {}",
                   host->name(), name, host->fault()->message());
  }
}

}  // namespace

Task<std::string> UploadImage(Site& site, ImageUploadParameters upload) {
  co_await site.hosts.Connected();
  std::vector<Host*> hosts = OneOfEachStorage(site.hosts.Usable());
  if (hosts.empty()) site.hosts[0].Use();
  std::string name = VolumeNameOf(site.config->name.str(), upload);
  auto remove = [&](const Failure&) { return Remove(site.environment.loop, site.logger, hosts, name); };
  co_await OnFailure(UploadToAll(site.environment.loop, site.logger, hosts, upload, name), remove);
  WarnOfOthers(site.hosts, site.logger, name);
  co_return name;
}

Task<> DeleteImageOn(Host& host, std::string volume) {
  co_await DeleteTemplatesOn(host, volume);
  std::vector<VolumeInfo> volumes = co_await host.Use().Volumes();
  auto found = std::ranges::find(volumes, volume, &VolumeInfo::name);
  if (found == volumes.end()) co_return co_await RemoveImage(host, std::move(volume));
  auto user = std::ranges::find(volumes, found->path, &VolumeInfo::backing_path);
  if (user != volumes.end()) {
    throw Error(Verdict::kRetry,
                fmt::format("image {} on host {} is in use by {}", volume, host.name(), Excerpt(user->name)));
  }
  co_await RemoveImage(host, std::move(volume));
}

Task<> DeleteImage(Hosts& hosts, std::string volume) {
  if (!ParseImageVolume(volume)) co_return;
  co_await hosts.Connected();
  for (const auto& host : hosts) co_await DeleteImageOn(*host, volume);
}

Task<std::vector<ListedImage>> ListUploads(Hosts& hosts) {
  co_await hosts.Connected();
  std::map<std::string, ListedImage> images;
  for (Host* host : hosts.Usable()) {
    std::vector<VolumeInfo> volumes = co_await host->Use().Volumes();
    for (const VolumeInfo& volume : volumes) {
      std::optional<ImageVolume> image = ParseImageVolume(volume.name);
      if (image) images[volume.name] = {volume.name, volume.name, MetadataOf(*image)};
    }
  }
  std::vector<ListedImage> list;
  for (auto& [name, image] : images) list.push_back(std::move(image));
  co_return list;
}

namespace {

Task<Host*> FindSource(Hosts& hosts, std::string image) {
  for (const auto& host : hosts) {
    bool is_there = co_await HasImage(*host, image);
    if (is_there) co_return host.get();
  }
  throw Error(Verdict::kNotFound, fmt::format("no host that can be used has image {}", image));
}

// The volume is raw while it is written, whatever the image is: libvirt would write a header of its own
// otherwise.
Task<> CopyImage(Site& site, Host& target, std::string image) {
  Host* source = co_await FindSource(site.hosts, image);
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

bool ShareStorage(const Host& one, const Host& other) {
  if (&one == &other) return true;
  const std::string& storage = one.size().shared_storage;
  return !storage.empty() && storage == other.size().shared_storage;
}

std::vector<Host*> OneOfEachStorage(const std::vector<Host*>& hosts) {
  std::vector<Host*> chosen;
  for (Host* host : hosts) {
    auto shares = [host](const Host* other) { return ShareStorage(*host, *other); };
    if (std::ranges::none_of(chosen, shares)) chosen.push_back(host);
  }
  return chosen;
}

}  // namespace nodepool::drivers::libvirt
