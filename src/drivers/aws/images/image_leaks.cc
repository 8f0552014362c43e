#include <algorithm>
#include <set>

#include "async/attempt.h"
#include "base/time_text.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/images/images.h"
#include "drivers/aws/images/own_images.h"

namespace nodepool::drivers::aws {

using driver::cloud::Resource;
using TagsById = std::map<std::string, std::map<std::string, std::string>>;

namespace {

constexpr Duration kAbandoned = std::chrono::hours(24);
constexpr std::size_t kMostValues = 200;  // of a filter
// Kinds of resources, as metrics call them.
constexpr const char* kImageKind = "ami";
constexpr const char* kSnapshotKind = "snapshot";
constexpr const char* kObjectKind = "object";

std::string ProviderFilter() { return std::string("tag:") + driver::cloud::kProviderKey; }

Task<std::vector<Resource>> MarkedImages(Ec2& ec2, std::vector<std::string> provider) {
  std::vector<MachineImage> images = co_await ListOwnImages(ec2, ProviderFilter(), std::move(provider));
  std::vector<Resource> resources;
  for (MachineImage& image : images) {
    resources.push_back({kImageKind, std::move(image.id), std::move(image.tags)});
  }
  co_return resources;
}

Task<std::vector<Resource>> MarkedSnapshots(Ec2& ec2, std::vector<std::string> provider) {
  std::vector<Snapshot> snapshots = co_await ListSnapshots(ec2, ProviderFilter(), std::move(provider));
  std::vector<Resource> resources;
  for (Snapshot& snapshot : snapshots) {
    resources.push_back({kSnapshotKind, std::move(snapshot.id), std::move(snapshot.tags)});
  }
  co_return resources;
}

// Tags are read once for each content of an object.
Task<std::vector<Resource>> MarkedObjects(ImageContext& context, S3& s3) {
  std::map<std::string, TaggedObject> known = std::exchange(context.sweep.objects, {});
  std::vector<Resource> resources;
  for (const auto& [image, settings] : context.config.diskimages) {
    std::string prefix = image.str() + "-";
    std::vector<S3Object> objects = co_await s3.ListObjects(std::move(prefix));
    for (const S3Object& object : objects) {
      if (!IsKeyOf(object.key, image)) continue;
      auto before = known.find(object.key);
      bool is_known = before != known.end() && before->second.etag == object.etag;
      TaggedObject tagged{object.etag, {}};
      if (is_known) {
        tagged = before->second;
      } else {
        tagged.tags = co_await s3.TagsOf(object.key);
      }
      resources.push_back({kObjectKind, object.key, tagged.tags});
      context.sweep.objects[object.key] = std::move(tagged);
    }
  }
  co_return resources;
}

// Results of this provider's tasks that no earlier sweep has looked at: the tags of their tasks by snapshot.
Task<TagsById> NewResults(ImageContext& context) {
  TagsById results;
  std::set<std::string> listed;
  for (ImportKind kind : {ImportKind::kSnapshot, ImportKind::kImage}) {
    Task<std::vector<ImportTask>> list = ListImportTasks(context.services.ec2(), kind);
    std::vector<ImportTask> tasks = co_await std::move(list);
    for (const ImportTask& task : tasks) {
      auto provider = task.tags.find(driver::cloud::kProviderKey);
      bool is_ours = provider != task.tags.end() && provider->second == context.config.name.str();
      if (!is_ours || !task.is_completed() || task.snapshot.empty()) continue;
      listed.insert(task.id);
      if (!context.sweep.repaired_tasks.contains(task.id)) results[task.snapshot] = task.tags;
    }
  }
  context.sweep.repaired_tasks = std::move(listed);
  co_return results;
}

Task<> TagUntagged(Ec2& ec2, const TagsById& results, std::vector<std::string> snapshot_ids) {
  std::vector<Snapshot> snapshots = co_await ListSnapshots(ec2, "snapshot-id", snapshot_ids);
  for (const Snapshot& snapshot : snapshots) {
    if (snapshot.tags.empty()) co_await AddTags(ec2, snapshot.id, results.at(snapshot.id));
  }
  std::vector<MachineImage> images =
      co_await ListOwnImages(ec2, "block-device-mapping.snapshot-id", std::move(snapshot_ids));
  for (const MachineImage& image : images) {
    auto device = std::ranges::find_if(
        image.devices, [&](const BlockDevice& one) { return results.contains(one.snapshot_id); });
    bool is_untagged = image.tags.empty() && device != image.devices.end();
    if (is_untagged) co_await AddTags(ec2, image.id, results.at(device->snapshot_id));
  }
}

Task<> RepairTags(ImageContext& context) {
  TagsById results = co_await NewResults(context);
  std::vector<std::string> batch;
  for (const auto& [snapshot, tags] : results) {
    batch.push_back(snapshot);
    if (batch.size() < kMostValues && snapshot != results.rbegin()->first) continue;
    co_await TagUntagged(context.services.ec2(), results, std::exchange(batch, {}));
  }
}

Task<> AbortOldUploadsOf(S3& s3, ImageName image, WallTime now, log::Logger logger) {
  std::string prefix = image.str() + "-";
  std::vector<S3Upload> uploads = co_await s3.ListUploads(std::move(prefix));
  for (const S3Upload& upload : uploads) {
    std::optional<WallTime> begun = ParseIso8601(upload.initiated);
    if (!begun || !IsKeyOf(upload.key, image) || now - *begun < kAbandoned) continue;
    logger.Warning("Removing the parts of {} in bucket {}, whose upload began at {}", upload.key, s3.bucket(),
                   upload.initiated);
    co_await s3.AbortUpload(upload.key, upload.id);
  }
}

}  // namespace

Task<> AppendMarkedImages(ImageContext& context, std::vector<Resource>& resources) {
  const ProviderName& provider = context.config.name;
  Outcome<> repaired = co_await Attempt(RepairTags(context));
  if (!repaired) {
    context.sweep.repaired_tasks.clear();
    context.logger.Warning("Tags of imported images are checked in the next sweep: {}",
                           repaired.error().message());
  }
  Ec2& ec2 = context.services.ec2();
  std::vector<std::string> name{provider.str()};
  Task<std::vector<Resource>> images = MarkedImages(ec2, name);
  co_await driver::cloud::AppendListed(context.logger, provider, "images", std::move(images), resources);
  Task<std::vector<Resource>> snapshots = MarkedSnapshots(ec2, std::move(name));
  co_await driver::cloud::AppendListed(context.logger, provider, "snapshots", std::move(snapshots),
                                       resources);
  if (context.services.s3() == nullptr) co_return;
  Task<std::vector<Resource>> objects = MarkedObjects(context, *context.services.s3());
  co_await driver::cloud::AppendListed(context.logger, provider, "objects", std::move(objects), resources);
}

bool IsOfImages(const Resource& resource) {
  return resource.type == kImageKind || resource.type == kSnapshotKind || resource.type == kObjectKind;
}

Task<> DeleteMarkedImage(Services& services, Resource resource) {
  if (resource.type == kImageKind) {
    co_await DeregisterImage(services.ec2(), std::move(resource.id));
  } else if (resource.type == kSnapshotKind) {
    co_await DeleteSnapshot(services.ec2(), std::move(resource.id));
  } else if (services.s3() != nullptr) {
    co_await services.s3()->DeleteObject(std::move(resource.id));
  }
}

Task<> AbortOldUploads(ImageContext& context) {
  S3* s3 = context.services.s3();
  if (s3 == nullptr) co_return;
  for (const auto& [image, settings] : context.config.diskimages) {
    Task<> abort = AbortOldUploadsOf(*s3, image, context.services.Now(), context.logger);
    Outcome<> done = co_await Attempt(std::move(abort));
    if (!done) {
      context.logger.Warning("Abandoned uploads of image {} are searched for later: {}", image,
                             done.error().message());
    }
  }
}

Task<std::vector<driver::ListedImage>> ListUploadedImages(Ec2& ec2) {
  std::vector<std::string> key{driver::cloud::kBuildKey};
  std::vector<MachineImage> images = co_await ListOwnImages(ec2, "tag-key", std::move(key));
  std::vector<driver::ListedImage> listed;
  for (MachineImage& image : images) {
    listed.push_back({std::move(image.name), std::move(image.id), std::move(image.tags)});
  }
  co_return listed;
}

}  // namespace nodepool::drivers::aws
