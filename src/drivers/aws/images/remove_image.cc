#include <fmt/format.h>

#include <set>

#include "async/attempt.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/images/images.h"
#include "drivers/aws/images/own_images.h"
#include "drivers/aws/images/send_file.h"

namespace nodepool::drivers::aws {

namespace {

// The image whose deletion has begun: its snapshots cannot be found by the image any more once it is
// deregistered.
constexpr const char* kDeletedWith = "nodepool_deleted_with";

std::string TagFilter(const char* key) { return std::string("tag:") + key; }

// AWS does not delete a snapshot that is still being written; one that is declared complete with another
// number of blocks than were written fails.
Task<> DeleteSnapshotOf(Services& services, log::Logger logger, Snapshot snapshot) {
  if (snapshot.state == "pending") {
    Task<std::string> seal = services.ebs().Complete(snapshot.id, 0, "");
    Outcome<std::string> sealed = co_await Attempt(std::move(seal));
    if (!sealed) logger.Debug("Snapshot {}: {}", snapshot.id, sealed.error().message());
  }
  co_await DeleteSnapshot(services.ec2(), snapshot.id);
}

Task<> DeleteWithSnapshots(Ec2& ec2, log::Logger logger, std::string id) {
  std::optional<MachineImage> image = co_await FindImage(ec2, id);
  std::set<std::string> snapshots;
  if (image) {
    for (const BlockDevice& device : image->devices) {
      if (!device.snapshot_id.empty()) snapshots.insert(device.snapshot_id);
    }
    const std::map<std::string, std::string> mark{{kDeletedWith, id}};
    for (const std::string& snapshot : snapshots) {
      co_await driver::cloud::EnsureGone(AddTags(ec2, snapshot, mark));
    }
    logger.Info("Deleting image {} with {} snapshots", id, snapshots.size());
    co_await DeregisterImage(ec2, id);
  } else {
    std::vector<std::string> images{id};
    std::vector<Snapshot> left = co_await ListSnapshots(ec2, TagFilter(kDeletedWith), std::move(images));
    for (const Snapshot& snapshot : left) snapshots.insert(snapshot.id);
  }
  for (const std::string& snapshot : snapshots) co_await DeleteSnapshot(ec2, snapshot);
}

// What the upload's import tasks have made, which may have no tags.
struct Made {
  std::set<std::string> images;
  std::set<std::string> snapshots;
  std::string active;  // a task that still works; empty: none
};

Task<Made> ListMade(Ec2& ec2, UploadMarks marks) {
  Made made;
  for (ImportKind kind : {ImportKind::kSnapshot, ImportKind::kImage}) {
    Task<std::vector<ImportTask>> list = ListImportTasks(ec2, kind);
    std::vector<ImportTask> tasks = co_await std::move(list);
    for (const ImportTask& task : tasks) {
      if (!marks.AreOn(task.tags)) continue;
      if (!task.has_ended()) made.active = task.id;
      if (!task.image.empty()) made.images.insert(task.image);
      if (!task.snapshot.empty()) made.snapshots.insert(task.snapshot);
    }
  }
  co_return made;
}

}  // namespace

Task<> DeleteImage(ImageContext& context, std::string external_id) {
  std::optional<UploadMarks> marks = ReadUnfinishedId(external_id, context.config.name.str());
  if (marks) return RemoveUnfinished(context.services, context.logger, std::move(*marks));
  return DeleteWithSnapshots(context.services.ec2(), context.logger, std::move(external_id));
}

Task<> RemoveUnfinished(Services& services, log::Logger logger, UploadMarks marks) {
  Ec2& ec2 = services.ec2();
  if (services.s3() != nullptr) co_await RemoveObject(*services.s3(), marks.key);
  Made made = co_await ListMade(ec2, marks);
  const std::string filter = TagFilter(driver::cloud::kUploadKey);
  const std::vector<std::string> uploads{marks.upload};
  std::vector<MachineImage> images = co_await ListOwnImages(ec2, filter, uploads);
  for (const MachineImage& image : images) {
    if (marks.AreOn(image.tags)) made.images.insert(image.id);
  }
  for (const std::string& image : made.images) co_await DeleteWithSnapshots(ec2, logger, image);
  std::vector<Snapshot> snapshots = co_await ListSnapshots(ec2, filter, uploads);
  for (const Snapshot& snapshot : snapshots) {
    if (!marks.AreOn(snapshot.tags)) continue;
    made.snapshots.erase(snapshot.id);
    co_await DeleteSnapshotOf(services, logger, snapshot);
  }
  for (const std::string& snapshot : made.snapshots) co_await DeleteSnapshot(ec2, snapshot);
  if (made.active.empty()) co_return;
  throw Error(Verdict::kRetry,
              fmt::format("import task {} has not ended yet; what it makes is removed then", made.active));
}

}  // namespace nodepool::drivers::aws
