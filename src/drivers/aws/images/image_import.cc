#include "drivers/aws/images/image_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "async/blocking_pool.h"
#include "async/task.h"
#include "base/crypto.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/api/service_calls.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_request.h"
#include "drivers/aws/config/aws_settings.h"

namespace nodepool::drivers::aws {

namespace {

constexpr std::size_t kMaxObjectTags = 10;

bool FitsS3(const std::string& text) {
  return std::ranges::all_of(text, [](char c) {
    bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return is_plain || std::string_view(" +-=._:/@").find(c) != std::string_view::npos;
  });
}

}  // namespace

std::map<std::string, std::string> TagsOf(const driver::ImageUploadParameters& upload) {
  std::map<std::string, std::string> tags;
  for (const auto& [key, value] : driver::cloud::TextMetadata(upload)) {
    tags[CutToCharacters(key, kMaxTagKey)] = CutToCharacters(value, kMaxTagValue);
  }
  return tags;
}

std::map<std::string, std::string> ObjectTags(const std::map<std::string, std::string>& tags) {
  bool do_fit = tags.size() <= kMaxObjectTags && std::ranges::all_of(tags, [](const auto& tag) {
                  return FitsS3(tag.first) && FitsS3(tag.second);
                });
  if (do_fit) return tags;
  std::map<std::string, std::string> own;
  for (const char* key : {driver::cloud::kProviderKey, driver::cloud::kBuildKey, driver::cloud::kUploadKey,
                          driver::cloud::kAttemptKey}) {
    if (tags.contains(key)) own[key] = tags.at(key);
  }
  return own;
}

namespace {

void AddSource(Query& query, const std::string& container, const ImportOrder& order) {
  query.Add(container + ".Format", order.format);
  query.Add(container + ".UserBucket.S3Bucket", order.bucket);
  query.Add(container + ".UserBucket.S3Key", order.key);
  query.Add("ClientToken", order.token);
}

std::string ReadTaskId(const pugi::xml_node& root) { return TextAt(root, {"importTaskId"}); }

}  // namespace

std::vector<ImportTask> ReadSnapshotTasks(const pugi::xml_node& root) {
  std::vector<ImportTask> tasks;
  for (const pugi::xml_node& item : Items(root, "importSnapshotTaskSet")) {
    pugi::xml_node detail = item.child("snapshotTaskDetail");
    tasks.push_back({TextAt(item, {"importTaskId"}), TextAt(detail, {"status"}),
                     TextAt(detail, {"statusMessage"}), NumberAt(detail, {"progress"}), "",
                     TextAt(detail, {"snapshotId"}), ReadTagSet(item)});
  }
  return tasks;
}

std::vector<ImportTask> ReadImageTasks(const pugi::xml_node& root) {
  std::vector<ImportTask> tasks;
  for (const pugi::xml_node& item : Items(root, "importImageTaskSet")) {
    tasks.push_back({TextAt(item, {"importTaskId"}), TextAt(item, {"status"}),
                     TextAt(item, {"statusMessage"}), NumberAt(item, {"progress"}), TextAt(item, {"imageId"}),
                     TextAt(item, {"snapshotDetailSet", "item", "snapshotId"}), ReadTagSet(item)});
  }
  return tasks;
}

Task<std::string> BeginImport(Ec2& ec2, ImportKind kind, const ImportOrder& order) {
  bool is_image = kind == ImportKind::kImage;
  Query query = is_image ? Query("ImportImage") : Query("ImportSnapshot");
  AddSource(query, is_image ? "DiskContainer.1" : "DiskContainer", order);
  if (is_image) query.Add("Architecture", order.architecture);
  AddTagSpecifications({is_image ? "import-image-task" : "import-snapshot-task"}, order.tags, query);
  std::string id = co_await ec2.Call<std::string>(std::move(query), &ReadTaskId);
  if (id.empty()) throw Error(Verdict::kRetry, "AWS began an import and returned no id of its task");
  co_return id;
}

Task<std::vector<ImportTask>> ListImportTasks(Ec2& ec2, ImportKind kind, std::string id) {
  bool is_image = kind == ImportKind::kImage;
  Query query = is_image ? Query("DescribeImportImageTasks") : Query("DescribeImportSnapshotTasks");
  if (!id.empty()) query.Add("ImportTaskId.1", id);
  Task<std::vector<ImportTask>> list =
      ec2.List<ImportTask>(std::move(query), is_image ? &ReadImageTasks : &ReadSnapshotTasks);
  Outcome<std::vector<ImportTask>> tasks = co_await Attempt(std::move(list));
  if (!tasks && CodeOf(tasks.error()).starts_with("InvalidConversionTaskId")) {
    co_return std::vector<ImportTask>();
  }
  if (!tasks) tasks.error().Rethrow();
  co_return std::move(*tasks);
}

std::vector<Snapshot> ReadSnapshots(const pugi::xml_node& root) {
  std::vector<Snapshot> snapshots;
  for (const pugi::xml_node& item : Items(root, "snapshotSet")) {
    Snapshot snapshot{TextAt(item, {"snapshotId"}), TextAt(item, {"status"}), NumberAt(item, {"volumeSize"}),
                      ReadTagSet(item), TextAt(item, {"statusMessage"})};
    if (!snapshot.id.empty()) snapshots.push_back(std::move(snapshot));
  }
  return snapshots;
}

Task<std::vector<Snapshot>> ListSnapshots(Ec2& ec2, std::string filter, std::vector<std::string> values) {
  Query query("DescribeSnapshots");
  query.Add("Owner.1", "self").AddFilter(std::move(filter), values);
  query.Add("MaxResults", 1000);
  return ec2.List(std::move(query), &ReadSnapshots);
}

Task<> DeleteSnapshot(Ec2& ec2, std::string id) {
  Query query("DeleteSnapshot");
  query.Add("SnapshotId", std::move(id));
  return driver::cloud::EnsureGone(ec2.Call(std::move(query)));
}

Task<> AddTags(Ec2& ec2, std::string id, const std::map<std::string, std::string>& tags) {
  Query query("CreateTags");
  query.Add("ResourceId.1", std::move(id));
  int number = 0;
  for (const auto& [key, value] : tags) {
    std::string tag = fmt::format("Tag.{}.", ++number);
    query.Add(tag + "Key", key).Add(tag + "Value", value);
  }
  return ec2.Call(std::move(query));
}

namespace {

constexpr const char* kRootDevice = "/dev/sda1";
constexpr Duration kImagePause = std::chrono::seconds(2);
// What was just made may be unknown at first.
constexpr int kMaxUnknown = 30;
constexpr std::array<std::string_view, 4> kFailedStates = {"failed", "error", "invalid", "deregistered"};

std::string ReadImageId(const pugi::xml_node& root) { return TextAt(root, {"imageId"}); }

// NotFound, and Unavailable, which means that it was deregistered.
bool IsGone(const Failure& failure) {
  std::string code = CodeOf(failure);
  return code == "InvalidAMIID.NotFound" || code == "InvalidAMIID.Unavailable";
}

Query Registration(const driver::ImageUploadParameters& upload, const Snapshot& snapshot) {
  const auto& image = driver::cloud::As<AwsDiskImage>(*upload.image);
  Query query("RegisterImage");
  query.Add("Name", upload.name).Add("Architecture", image.architecture);
  query.Add("RootDeviceName", kRootDevice).Add("VirtualizationType", "hvm");
  query.Add("EnaSupport", image.ena_support);
  if (image.wants_imdsv2) query.Add("ImdsSupport", "v2.0");
  query.Add("BlockDeviceMapping.1.DeviceName", kRootDevice);
  const std::string volume = "BlockDeviceMapping.1.Ebs.";
  query.Add(volume + "DeleteOnTermination", true).Add(volume + "SnapshotId", snapshot.id);
  query.Add(volume + "VolumeSize", image.volume.size.value_or(snapshot.size));
  if (image.volume.type) query.Add(volume + "VolumeType", *image.volume.type);
  if (image.volume.iops) query.Add(volume + "Iops", *image.volume.iops);
  if (image.volume.throughput) query.Add(volume + "Throughput", *image.volume.throughput);
  AddTagSpecifications({"image"}, TagsOf(upload), query);
  return query;
}

// Ours of that name: the answer to an earlier try was lost. Empty: there is none.
Task<std::string> FindRegistered(Ec2& ec2, std::string name, const UploadMarks& marks) {
  std::vector<std::string> names{std::move(name)};
  std::vector<MachineImage> images = co_await ListOwnImages(ec2, "name", std::move(names));
  for (const MachineImage& image : images) {
    if (marks.AreOn(image.tags)) co_return image.id;
  }
  co_return "";
}

}  // namespace

Task<std::vector<MachineImage>> ListOwnImages(Ec2& ec2, std::string filter, std::vector<std::string> values) {
  Query query("DescribeImages");
  query.Add("Owner.1", "self").AddFilter(std::move(filter), values);
  query.Add("MaxResults", 1000);
  return ec2.List(std::move(query), &ReadImages);
}

Task<std::optional<MachineImage>> FindImage(Ec2& ec2, std::string id) {
  Query query("DescribeImages");
  query.Add("ImageId.1", std::move(id));
  Outcome<std::vector<MachineImage>> images = co_await Attempt(ec2.List(std::move(query), &ReadImages));
  if (!images && IsGone(images.error())) co_return std::nullopt;
  if (!images) images.error().Rethrow();
  if (images->empty()) co_return std::nullopt;
  co_return std::move(images->front());
}

Task<std::string> RegisterImage(Loop& loop, Ec2& ec2, const driver::ImageUploadParameters& upload,
                                const UploadMarks& marks, const Snapshot& snapshot) {
  for (int tries = 1;; ++tries) {
    Task<std::string> call = ec2.Call<std::string>(Registration(upload, snapshot), &ReadImageId);
    Outcome<std::string> id = co_await Attempt(std::move(call));
    if (id && !id->empty()) co_return *id;
    if (id) throw Error(Verdict::kRetry, "AWS registered an image and returned no id");
    std::string code = CodeOf(id.error());
    if (code == "InvalidAMIName.Duplicate") {
      std::string own = co_await FindRegistered(ec2, upload.name, marks);
      if (!own.empty()) co_return own;
    }
    bool is_unknown = code == "InvalidSnapshot.NotFound" && tries < kMaxUnknown;
    if (!is_unknown) id.error().Rethrow();
    co_await loop.SleepFor(kImagePause);
  }
}

Task<> AwaitAvailable(Loop& loop, Ec2& ec2, std::string id) {
  for (int unknown = 0; unknown < kMaxUnknown;) {
    std::optional<MachineImage> image = co_await FindImage(ec2, id);
    if (!image) ++unknown;
    if (image && image->state == "available") co_return;
    if (image && std::ranges::find(kFailedStates, image->state) != kFailedStates.end()) {
      throw Error(Verdict::kFail, fmt::format("image {} went into state {}: {}", id, image->state,
                                              Excerpt(image->state_reason, 300)));
    }
    co_await loop.SleepFor(kImagePause);
  }
  throw Error(Verdict::kFail, fmt::format("image {} has vanished", id));
}

Task<> DeregisterImage(Ec2& ec2, std::string id) {
  Query query("DeregisterImage");
  query.Add("ImageId", std::move(id));
  Outcome<> done = co_await Attempt(ec2.Call(std::move(query)));
  if (!done && !IsGone(done.error())) done.error().Rethrow();
}

namespace {

Task<> RunWorker(TaskGroup& workers, Task<> work, Outcome<>& first) {
  Outcome<> done = co_await Attempt(std::move(work));
  if (done || !first) co_return;
  first = std::move(done);
  workers.CancelAll();
}

}  // namespace

Task<> RunWorkers(Loop& loop, log::Logger logger, std::string name, int count, std::function<Task<>()> make) {
  Outcome<> first;
  TaskGroup workers(loop, std::move(logger));
  for (int i = 0; i < count; ++i) workers.Spawn(name, RunWorker(workers, make(), first));
  auto stop = [&workers] { return workers.Stop(); };
  co_await WithCleanup(workers.Join(), stop);
  if (!first) first.error().Rethrow();
}

namespace {

constexpr std::uint64_t kPartSize = 8 << 20;
constexpr std::uint64_t kMaxParts = 10'000;
constexpr std::uint64_t kInMemory = 32 << 20;

Task<Content> ReadContent(BlockingPool& pool, std::shared_ptr<const SparseFile> file, std::uint64_t place,
                          std::size_t length) {
  auto read = [file = std::move(file), place, length] { return MakeContent(file->Read(place, length)); };
  return OnBlockingPool(pool, std::move(read));
}

// An upload in parts under way.
struct Parts {
  BlockingPool& pool;
  S3& s3;
  std::shared_ptr<const SparseFile> file;
  std::string key;
  std::string upload_id;
  PartPlan plan;
  std::function<void(std::uint64_t)> sent;
  int next = 0;
  std::uint64_t bytes_sent = 0;
  std::vector<S3Part> done;
};

Task<> PutParts(Parts& parts) {
  while (parts.next < parts.plan.count) {
    int index = parts.next++;
    std::uint64_t place = static_cast<std::uint64_t>(index) * parts.plan.size;
    Content content = co_await ReadContent(parts.pool, parts.file, place, parts.plan.size);
    std::uint64_t length = content.bytes.size();
    Task<S3Part> put = parts.s3.PutPart(parts.key, parts.upload_id, index + 1, std::move(content));
    S3Part part = co_await std::move(put);
    parts.done.at(static_cast<std::size_t>(index)) = std::move(part);
    parts.bytes_sent += length;
    parts.sent(parts.bytes_sent);
  }
}

}  // namespace

PartPlan PlanParts(std::uint64_t file_size) {
  PartPlan plan;
  std::uint64_t least = (file_size + kMaxParts - 1) / kMaxParts;
  std::uint64_t mebibytes = (least + (1 << 20) - 1) >> 20;
  plan.size = std::max(kPartSize, mebibytes << 20);
  plan.count = static_cast<int>(std::max<std::uint64_t>(1, (file_size + plan.size - 1) / plan.size));
  plan.at_a_time = static_cast<int>(std::clamp<std::uint64_t>(kInMemory / plan.size, 1, 4));
  return plan;
}

Task<> PutFile(Loop& loop, BlockingPool& pool, log::Logger logger, S3& s3,
               std::shared_ptr<const SparseFile> file, std::string key,
               std::map<std::string, std::string> tags, std::function<void(std::uint64_t)> sent) {
  Parts parts{pool, s3, file, key, "", PlanParts(file->size()), std::move(sent)};
  if (parts.plan.count == 1) {
    Content content = co_await ReadContent(pool, file, 0, file->size());
    co_await s3.PutObject(key, std::move(tags), std::move(content));
    parts.sent(file->size());
    co_return;
  }
  parts.upload_id = co_await s3.BeginUpload(key, std::move(tags));
  parts.done.resize(static_cast<std::size_t>(parts.plan.count));
  std::function<Task<>()> make = [&parts] { return PutParts(parts); };
  std::string name = "send parts of " + key;
  co_await RunWorkers(loop, std::move(logger), std::move(name), parts.plan.at_a_time, std::move(make));
  co_await s3.CompleteUpload(key, parts.upload_id, std::move(parts.done));
}

Task<> RemoveObject(S3& s3, std::string key) {
  std::vector<S3Upload> uploads = co_await s3.ListUploads(key);
  for (const S3Upload& upload : uploads) {
    if (upload.key == key) co_await s3.AbortUpload(key, upload.id);
  }
  co_await s3.DeleteObject(key);
}

namespace {

constexpr int kBlocksAtATime = 8;
// What one task takes at a time; so many bytes of zeros are read in one go at most.
constexpr int kBlocksOfAStretch = 64;
constexpr Duration kPollPause = std::chrono::seconds(3);
constexpr int kMaxUnseen = 20;  // lists without the snapshot

// A snapshot under way.
struct Writing {
  BlockingPool& pool;
  Ebs& ebs;
  std::shared_ptr<const SparseFile> file;
  NewSnapshot snapshot;
  std::function<void(std::uint64_t)> passed;
  std::uint64_t next = 0;
  std::uint64_t bytes_passed = 0;
  std::map<int, std::string> digests = {};  // of the written blocks, in hex
};

Task<> WriteStretch(Writing& writing, std::uint64_t place, std::uint64_t end) {
  while (place < end) {
    auto find = [file = writing.file, place, end, size = writing.snapshot.block_size] {
      return FindBlock(*file, place, end, size);
    };
    std::optional<Block> block = co_await OnBlockingPool(writing.pool, std::move(find));
    if (!block) co_return;
    std::string digest = block->content.sha256;
    Task<> put = writing.ebs.PutBlock(writing.snapshot.id, block->index, std::move(block->content));
    co_await std::move(put);
    writing.digests[block->index] = std::move(digest);
    place = (static_cast<std::uint64_t>(block->index) + 1) *
            static_cast<std::uint64_t>(writing.snapshot.block_size);
  }
}

Task<> WriteStretches(Writing& writing) {
  std::uint64_t size = writing.file->size();
  while (writing.next < size) {
    std::uint64_t place = writing.next;
    std::uint64_t stretch = static_cast<std::uint64_t>(writing.snapshot.block_size) * kBlocksOfAStretch;
    writing.next = std::min(place + stretch, size);
    std::uint64_t length = writing.next - place;
    co_await WriteStretch(writing, place, writing.next);
    writing.bytes_passed += length;
    writing.passed(writing.bytes_passed);
  }
}

std::string DigestOfAll(const std::map<int, std::string>& digests) {
  if (digests.empty()) return "";
  Digest all("sha256");
  for (const auto& [index, digest] : digests) all.Add(BytesOfHex(digest));
  return all.Hex();
}

// A completion whose answer was lost is refused when it is repeated.
Task<std::string> Seal(Ebs& ebs, const Writing& writing) {
  Task<std::string> completion = ebs.Complete(writing.snapshot.id, static_cast<int>(writing.digests.size()),
                                              DigestOfAll(writing.digests));
  Outcome<std::string> status = co_await Attempt(std::move(completion));
  if (!status && CodeOf(status.error()) == "ConflictException") co_return "pending";
  if (!status) status.error().Rethrow();
  co_return *status;
}

Task<Snapshot> AwaitCompleted(Loop& loop, Ec2& ec2, std::string id) {
  for (int unseen = 0; unseen < kMaxUnseen;) {
    std::vector<std::string> ids{id};
    std::vector<Snapshot> found = co_await ListSnapshots(ec2, "snapshot-id", std::move(ids));
    if (found.empty()) ++unseen;
    if (!found.empty() && found.front().state == "error") {
      throw Error(Verdict::kFail, fmt::format("snapshot {} went into state error: {}", id,
                                              Excerpt(found.front().message, 300)));
    }
    if (!found.empty() && found.front().state == "completed") co_return found.front();
    co_await loop.SleepFor(kPollPause);
  }
  throw Error(Verdict::kFail, fmt::format("snapshot {} has vanished", id));
}

}  // namespace

std::optional<Block> FindBlock(const SparseFile& file, std::uint64_t place, std::uint64_t end,
                               int block_size) {
  std::uint64_t size = static_cast<std::uint64_t>(block_size);
  while (place < end) {
    place = std::max(place, file.DataFrom(place) / size * size);
    if (place >= end) break;
    std::string bytes = file.Read(place, size);
    if (!driver::cloud::IsAllZeros(bytes)) {
      bytes.resize(size, '\0');
      return Block{static_cast<int>(place / size), MakeContent(std::move(bytes))};
    }
    place += size;
  }
  return std::nullopt;
}

Task<Snapshot> WriteSnapshot(Loop& loop, BlockingPool& pool, log::Logger logger, Ebs& ebs, Ec2& ec2,
                             std::shared_ptr<const SparseFile> file, std::map<std::string, std::string> tags,
                             std::string token, std::function<void(std::uint64_t)> passed) {
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
  int size = static_cast<int>((file->size() + kGibibyte - 1) / kGibibyte);
  NewSnapshot snapshot = co_await ebs.Begin(size, std::move(tags), std::move(token));
  Writing writing{pool, ebs, std::move(file), std::move(snapshot), std::move(passed)};
  std::function<Task<>()> make = [&writing] { return WriteStretches(writing); };
  std::string name = "write blocks of " + writing.snapshot.id;
  co_await RunWorkers(loop, std::move(logger), std::move(name), kBlocksAtATime, std::move(make));
  std::string status = co_await Seal(ebs, writing);
  if (status == "error") {
    throw Error(Verdict::kFail, fmt::format("AWS did not accept snapshot {} of {} blocks: its state is error",
                                            writing.snapshot.id, writing.digests.size()));
  }
  Snapshot completed = co_await AwaitCompleted(loop, ec2, writing.snapshot.id);
  co_return completed;
}

}  // namespace nodepool::drivers::aws
