#include "drivers/aws/images/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "async/backoff.h"
#include "async/blocking_pool.h"
#include "async/deadline.h"
#include "async/task.h"
#include "base/clock.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/images/staged_images.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/api/service_calls.h"
#include "drivers/aws/images/image_import.h"

namespace nodepool::drivers::aws {

using TagsById = std::map<std::string, std::map<std::string, std::string>>;
using driver::cloud::Resource;

namespace {

constexpr Duration kImportLimit = std::chrono::hours(6);
constexpr Duration kTooManyPause = std::chrono::seconds(30);
constexpr Backoff::Settings kTaskPauses{std::chrono::seconds(1), std::chrono::seconds(30), 1.5, 0.1};
constexpr int kMaxMissing = 3;  // lists without the task

// An upload under way.
struct Work {
  const ImageContext& context;
  const driver::ImageUploadParameters& upload;
  const AwsDiskImage& image;
  UploadMarks marks;
  std::shared_ptr<const SparseFile> file = nullptr;
};

// Reports how much of the file is done.
std::function<void(std::uint64_t)> Reporter(const Work& work, std::string step) {
  return [&work, step = std::move(step)](std::uint64_t bytes) {
    work.upload.report({step, static_cast<int>(bytes * 100 / work.file->size())});
  };
}

// A name that AWS refuses would be refused after hours.
void CheckName(const std::string& name) {
  bool is_good = name.size() >= 3 && name.size() <= 128 && std::ranges::all_of(name, [](char c) {
                   bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
                   return is_plain || std::string_view("() ./-'@_[]").find(c) != std::string_view::npos;
                 });
  if (is_good) return;
  throw Error(Verdict::kInvalid,
              fmt::format("AWS permits no image of the name {}: 3 to 128 letters, digits and "
                          "characters of () ./-'@_[]",
                          Excerpt(name, 150)));
}

S3& BucketOf(Services& services) {
  if (services.s3() != nullptr) return *services.s3();
  throw Error(Verdict::kInvalid,
              "the import methods snapshot and image need object-storage with bucket-name in the provider");
}

// While the account has too many tasks it waits, if the configuration says how long (driver-aws.md 15.2).
Task<std::string> BeginWhenPossible(const Work& work, ImportKind kind, const ImportOrder& order) {
  const ImageContext& context = work.context;
  SteadyTime until = context.loop().SteadyNow() + context.config.import_timeout.value_or(Duration(0));
  while (true) {
    Outcome<std::string> id = co_await Attempt(BeginImport(context.services.ec2(), kind, order));
    if (id) co_return *id;
    bool is_too_many = CodeOf(id.error()) == "ResourceCountLimitExceeded";
    if (!is_too_many || context.loop().SteadyNow() >= until) id.error().Rethrow();
    context.logger.Info("The account has as many import tasks as it may; image {} waits", work.upload.name);
    co_await context.loop().SleepFor(kTooManyPause);
  }
}

Task<ImportTask> AwaitTask(const Work& work, ImportKind kind, std::string id) {
  const ImageContext& context = work.context;
  Backoff pauses(kTaskPauses, context.environment.random);
  int missing = 0;
  while (true) {
    Duration pause = pauses.Next();
    co_await context.loop().SleepFor(pause);
    std::vector<ImportTask> tasks = co_await ListImportTasks(context.services.ec2(), kind, id);
    if (tasks.empty() && ++missing == kMaxMissing) {
      throw Error(Verdict::kFail, fmt::format("import task {} is not listed any more", id));
    }
    if (tasks.empty()) continue;
    const ImportTask& task = tasks.front();
    if (task.is_completed()) co_return task;
    if (task.has_ended()) {
      throw Error(Verdict::kFail, fmt::format("import task {} of {} failed: {}", id, work.marks.key,
                                              Excerpt(task.message, 300)));
    }
    work.upload.report({fmt::format("import task {}, {}", id, Excerpt(task.message)), task.percent});
  }
}

// Sends the file and has AWS import it; the object is removed afterwards.
Task<ImportTask> Import(const Work& work, ImportKind kind) {
  const ImageContext& context = work.context;
  S3& s3 = BucketOf(context.services);
  std::map<std::string, std::string> tags = TagsOf(work.upload);
  Task<> put = PutFile(context.loop(), context.environment.blocking_pool, context.logger, s3, work.file,
                       work.marks.key, ObjectTags(tags), Reporter(work, "sending the file"));
  co_await std::move(put);
  ImportOrder order{s3.bucket(),        work.marks.key,
                    work.upload.format, work.image.architecture,
                    std::move(tags),    work.marks.Token("import")};
  std::string id = co_await BeginWhenPossible(work, kind, order);
  context.logger.Info("Image {} is imported by task {}", work.upload.name, id);
  SteadyTime deadline = context.loop().SteadyNow() + context.config.import_timeout.value_or(kImportLimit);
  Task<ImportTask> wait = AwaitTask(work, kind, id);
  ImportTask task = co_await WithDeadline(context.loop(), deadline, "import task " + id, std::move(wait));
  Outcome<> removed = co_await Attempt(RemoveObject(s3, work.marks.key));
  if (!removed) {
    context.logger.Warning("Object {} of bucket {} is left: {}", work.marks.key, s3.bucket(),
                           removed.error().message());
  }
  co_return task;
}

// Without them nothing shows whose it is; the sweep for leaks repeats it.
Task<> AddTagsQuietly(const Work& work, std::string id) {
  if (id.empty()) co_return;
  Outcome<> added = co_await Attempt(AddTags(work.context.services.ec2(), id, TagsOf(work.upload)));
  if (!added) work.context.logger.Warning("{} has no tags yet: {}", id, added.error().message());
}

Task<std::string> ImportAsSnapshot(const Work& work) {
  Task<ImportTask> import = Import(work, ImportKind::kSnapshot);
  ImportTask task = co_await std::move(import);
  co_await AddTagsQuietly(work, task.snapshot);
  std::vector<std::string> ids{task.snapshot};
  std::vector<Snapshot> found =
      co_await ListSnapshots(work.context.services.ec2(), "snapshot-id", std::move(ids));
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
  Snapshot snapshot{
      task.snapshot, "completed", static_cast<int>((work.file->size() + kGibibyte - 1) / kGibibyte), {}};
  if (!found.empty()) snapshot = found.front();
  std::string id = co_await RegisterImage(work.context.loop(), work.context.services.ec2(), work.upload,
                                          work.marks, snapshot);
  co_return id;
}

Task<std::string> ImportAsImage(const Work& work) {
  Task<ImportTask> import = Import(work, ImportKind::kImage);
  ImportTask task = co_await std::move(import);
  if (task.image.empty()) throw Error(Verdict::kFail, "import task " + task.id + " made no image");
  co_await AddTagsQuietly(work, task.image);
  co_await AddTagsQuietly(work, task.snapshot);
  co_return task.image;
}

Task<std::string> WriteDirectly(const Work& work) {
  const ImageContext& context = work.context;
  SteadyTime deadline = context.loop().SteadyNow() + context.config.import_timeout.value_or(kImportLimit);
  Task<Snapshot> write =
      WriteSnapshot(context.loop(), context.environment.blocking_pool, context.logger, context.services.ebs(),
                    context.services.ec2(), work.file, TagsOf(work.upload), work.marks.Token("snapshot"),
                    Reporter(work, "writing the snapshot"));
  Snapshot snapshot =
      co_await WithDeadline(context.loop(), deadline, "writing the snapshot", std::move(write));
  std::string id =
      co_await RegisterImage(context.loop(), context.services.ec2(), work.upload, work.marks, snapshot);
  co_return id;
}

Task<std::string> MakeImage(Work& work) {
  work.file =
      co_await driver::cloud::OpenImageFile(work.context.environment.blocking_pool, work.upload.filename);
  std::string id;
  switch (work.image.import_method) {
    case ImportMethod::kSnapshot:
      id = co_await ImportAsSnapshot(work);
      break;
    case ImportMethod::kImage:
      id = co_await ImportAsImage(work);
      break;
    case ImportMethod::kEbsDirect:
      id = co_await WriteDirectly(work);
      break;
  }
  co_await AwaitAvailable(work.context.loop(), work.context.services.ec2(), id);
  work.context.logger.Info("Upload of {} complete as {}", work.upload.name, id);
  co_return id;
}

}  // namespace

Task<std::string> UploadImage(ImageContext& context, driver::ImageUploadParameters upload) {
  CheckName(upload.name);
  Work work{context, upload, driver::cloud::As<AwsDiskImage>(*upload.image), MarksOf(upload, upload.format)};
  if (work.image.import_method != ImportMethod::kEbsDirect) BucketOf(context.services);
  auto make = [&work] { return MakeImage(work); };
  auto remove = [&work] { return RemoveUnfinished(work.context.services, work.context.logger, work.marks); };
  Task<std::string> making =
      driver::cloud::UploadMarked(context.loop(), context.logger, upload, work.marks, make, remove);
  std::string id = co_await std::move(making);
  co_return id;
}

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
