#include "drivers/aws/images/image_leaks.h"

#include <algorithm>
#include <set>

#include "async/attempt.h"
#include "base/time_text.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/images/import_tasks.h"
#include "drivers/aws/images/own_images.h"
#include "drivers/aws/images/upload_tags.h"

namespace nodepool::drivers::aws {

using driver::cloud::Resource;
using TagsById = std::map<std::string, std::map<std::string, std::string>>;

namespace {

constexpr Duration kAbandoned = std::chrono::hours(24);
constexpr std::size_t kMostValues = 200;  // of a filter

std::string ProviderFilter() { return std::string("tag:") + driver::cloud::kProviderKey; }

Task<std::vector<Resource>> MarkedImages(AwsCloud& cloud) {
  std::vector<std::string> provider{cloud.config->name.str()};
  std::vector<MachineImage> images = co_await ListOwnImages(cloud.ec2, ProviderFilter(), std::move(provider));
  std::vector<Resource> resources;
  for (MachineImage& image : images) {
    resources.push_back({kImageKind, std::move(image.id), std::move(image.tags)});
  }
  co_return resources;
}

Task<std::vector<Resource>> MarkedSnapshots(AwsCloud& cloud) {
  std::vector<std::string> provider{cloud.config->name.str()};
  std::vector<Snapshot> snapshots = co_await ListSnapshots(cloud.ec2, ProviderFilter(), std::move(provider));
  std::vector<Resource> resources;
  for (Snapshot& snapshot : snapshots) {
    resources.push_back({kSnapshotKind, std::move(snapshot.id), std::move(snapshot.tags)});
  }
  co_return resources;
}

// Tags are read once for each content of an object.
Task<std::vector<Resource>> MarkedObjects(AwsCloud& cloud) {
  std::map<std::string, TaggedObject> known = std::exchange(cloud.sweep.objects, {});
  std::vector<Resource> resources;
  for (const auto& [image, settings] : cloud.config->diskimages) {
    std::string prefix = image.str() + "-";
    std::vector<S3Object> objects = co_await cloud.s3->ListObjects(std::move(prefix));
    for (const S3Object& object : objects) {
      if (!IsKeyOf(object.key, image)) continue;
      auto before = known.find(object.key);
      bool is_known = before != known.end() && before->second.etag == object.etag;
      TaggedObject tagged{object.etag, {}};
      if (is_known) {
        tagged = before->second;
      } else {
        tagged.tags = co_await cloud.s3->TagsOf(object.key);
      }
      resources.push_back({kObjectKind, object.key, tagged.tags});
      cloud.sweep.objects[object.key] = std::move(tagged);
    }
  }
  co_return resources;
}

// Results of this provider's tasks that no earlier sweep has looked at: the tags of their tasks by snapshot.
Task<TagsById> NewResults(AwsCloud& cloud) {
  TagsById results;
  std::set<std::string> listed;
  for (ImportKind kind : {ImportKind::kSnapshot, ImportKind::kImage}) {
    Task<std::vector<ImportTask>> list = ListImportTasks(cloud.ec2, kind);
    std::vector<ImportTask> tasks = co_await std::move(list);
    for (const ImportTask& task : tasks) {
      auto provider = task.tags.find(driver::cloud::kProviderKey);
      bool is_ours = provider != task.tags.end() && provider->second == cloud.config->name.str();
      if (!is_ours || !task.is_completed() || task.snapshot.empty()) continue;
      listed.insert(task.id);
      if (!cloud.sweep.repaired_tasks.contains(task.id)) results[task.snapshot] = task.tags;
    }
  }
  cloud.sweep.repaired_tasks = std::move(listed);
  co_return results;
}

Task<> TagUntagged(AwsCloud& cloud, const TagsById& results, std::vector<std::string> snapshot_ids) {
  std::vector<Snapshot> snapshots = co_await ListSnapshots(cloud.ec2, "snapshot-id", snapshot_ids);
  for (const Snapshot& snapshot : snapshots) {
    if (snapshot.tags.empty()) co_await AddTags(cloud.ec2, snapshot.id, results.at(snapshot.id));
  }
  std::vector<MachineImage> images =
      co_await ListOwnImages(cloud.ec2, "block-device-mapping.snapshot-id", std::move(snapshot_ids));
  for (const MachineImage& image : images) {
    auto device = std::ranges::find_if(
        image.devices, [&](const BlockDevice& one) { return results.contains(one.snapshot_id); });
    bool is_untagged = image.tags.empty() && device != image.devices.end();
    if (is_untagged) co_await AddTags(cloud.ec2, image.id, results.at(device->snapshot_id));
  }
}

Task<> RepairTags(AwsCloud& cloud) {
  TagsById results = co_await NewResults(cloud);
  std::vector<std::string> batch;
  for (const auto& [snapshot, tags] : results) {
    batch.push_back(snapshot);
    if (batch.size() < kMostValues && snapshot != results.rbegin()->first) continue;
    co_await TagUntagged(cloud, results, std::exchange(batch, {}));
  }
}

Task<> AbortOldUploadsOf(AwsCloud& cloud, ImageName image) {
  std::string prefix = image.str() + "-";
  std::vector<S3Upload> uploads = co_await cloud.s3->ListUploads(std::move(prefix));
  for (const S3Upload& upload : uploads) {
    std::optional<WallTime> begun = ParseIso8601(upload.initiated);
    if (!begun || !IsKeyOf(upload.key, image) || cloud.clock.Now() - *begun < kAbandoned) continue;
    cloud.logger.Warning("Removing the parts of {} in bucket {}, whose upload began at {}", upload.key,
                         cloud.s3->bucket(), upload.initiated);
    co_await cloud.s3->AbortUpload(upload.key, upload.id);
  }
}

}  // namespace

Task<> AppendMarkedImages(AwsCloud& cloud, std::vector<Resource>& resources) {
  const ProviderName& provider = cloud.config->name;
  Outcome<> repaired = co_await Attempt(RepairTags(cloud));
  if (!repaired) {
    cloud.sweep.repaired_tasks.clear();
    cloud.logger.Warning("Tags of imported images are checked in the next sweep: {}",
                         repaired.error().message());
  }
  co_await driver::cloud::AppendListed(cloud.logger, provider, "images", MarkedImages(cloud), resources);
  co_await driver::cloud::AppendListed(cloud.logger, provider, "snapshots", MarkedSnapshots(cloud),
                                       resources);
  if (!cloud.s3) co_return;
  co_await driver::cloud::AppendListed(cloud.logger, provider, "objects", MarkedObjects(cloud), resources);
}

Task<> AbortOldUploads(AwsCloud& cloud) {
  if (!cloud.s3) co_return;
  for (const auto& [image, settings] : cloud.config->diskimages) {
    Outcome<> done = co_await Attempt(AbortOldUploadsOf(cloud, image));
    if (!done) {
      cloud.logger.Warning("Abandoned uploads of image {} are searched for later: {}", image,
                           done.error().message());
    }
  }
}

Task<std::vector<driver::ListedImage>> ListUploadedImages(AwsCloud& cloud) {
  std::vector<std::string> key{driver::cloud::kBuildKey};
  std::vector<MachineImage> images = co_await ListOwnImages(cloud.ec2, "tag-key", std::move(key));
  std::vector<driver::ListedImage> listed;
  for (MachineImage& image : images) {
    listed.push_back({std::move(image.name), std::move(image.id), std::move(image.tags)});
  }
  co_return listed;
}

}  // namespace nodepool::drivers::aws
