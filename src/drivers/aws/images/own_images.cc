#include "drivers/aws/images/own_images.h"

#include <fmt/format.h>

#include <array>

#include "async/attempt.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/own_types.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_request.h"

namespace nodepool::drivers::aws {

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
