#include "drivers/aws/images/own_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "async/attempt.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/own_types.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_request.h"
#include "drivers/aws/config/tag_settings.h"

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

}  // namespace nodepool::drivers::aws
