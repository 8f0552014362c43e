#include "drivers/aws/compute/disks.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/task.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/api/service_calls.h"
#include "drivers/aws/compute/instance.h"

namespace nodepool::drivers::aws {

namespace {

constexpr const char* kAvailable = "available";

std::optional<int> OptionalNumber(const pugi::xml_node& node, const char* name) {
  std::string text = TextAt(node, {name});
  if (text.empty()) return std::nullopt;
  return NumberAt(node, {name});
}

BlockDevice ReadDevice(const pugi::xml_node& item) {
  BlockDevice device;
  device.name = TextAt(item, {"deviceName"});
  pugi::xml_node ebs = item.child("ebs");
  device.is_volume = static_cast<bool>(ebs);
  device.snapshot_id = TextAt(ebs, {"snapshotId"});
  device.type = TextAt(ebs, {"volumeType"});
  device.size = OptionalNumber(ebs, "volumeSize");
  device.iops = OptionalNumber(ebs, "iops");
  device.throughput = OptionalNumber(ebs, "throughput");
  return device;
}

}  // namespace

const BlockDevice* MachineImage::Root() const {
  auto root = std::ranges::find(devices, root_device, &BlockDevice::name);
  if (root == devices.end()) root = devices.begin();
  return root == devices.end() || !root->is_volume ? nullptr : &*root;
}

std::vector<MachineImage> ReadImages(const pugi::xml_node& root) {
  std::vector<MachineImage> images;
  for (const pugi::xml_node& item : Items(root, "imagesSet")) {
    MachineImage image;
    image.id = TextAt(item, {"imageId"});
    image.name = TextAt(item, {"name"});
    image.state = TextAt(item, {"imageState"});
    image.created = TextAt(item, {"creationDate"});
    image.root_device = TextAt(item, {"rootDeviceName"});
    image.tags = ReadTagSet(item);
    image.state_reason = TextAt(item, {"stateReason", "message"});
    for (const pugi::xml_node& device : Items(item, "blockDeviceMapping")) {
      image.devices.push_back(ReadDevice(device));
    }
    images.push_back(std::move(image));
  }
  return images;
}

const MachineImage* NewestAvailable(const std::vector<MachineImage>& images) {
  const MachineImage* newest = nullptr;
  for (const MachineImage& image : images) {
    if (image.state != kAvailable || image.id.empty()) continue;
    if (newest == nullptr || image.created > newest->created) newest = &image;
  }
  return newest;
}

MachineImages::MachineImages(Loop& loop, Ec2& ec2)
    : ec2_(ec2),
      by_filters_(loop, [this](Key filters) { return FindNewest(std::move(filters)); }),
      by_id_([this](std::string id) { return Load(std::move(id)); }) {}

Task<std::string> MachineImages::IdOf(AwsCloudImage image) {
  if (image.is_id) co_return image.external_name;
  Key key;
  for (const ImageFilter& filter : image.filters) key.emplace_back(filter.name, filter.values);
  Outcome<std::string> found = co_await Attempt(by_filters_.Get(std::move(key)));
  if (found) co_return std::move(*found);
  throw Error(found.error().verdict(),
              fmt::format("cloud image {}: {}", Excerpt(image.name), found.error().message()));
}

Task<std::string> MachineImages::FindNewest(Key filters) {
  Query query("DescribeImages");
  for (const auto& [name, values] : filters) query.AddFilter(name, values);
  std::vector<MachineImage> images = co_await ec2_.List(std::move(query), &ReadImages);
  const MachineImage* newest = NewestAvailable(images);
  if (newest == nullptr) throw Error(Verdict::kFail, "No cloud-image (AMI) matches supplied image filters");
  co_return newest->id;
}

Task<std::shared_ptr<const MachineImage>> MachineImages::Describe(std::string id) {
  std::shared_ptr<const MachineImage> image = co_await by_id_.Get(id);
  // Until it is available its disks may be missing.
  if (image->state != kAvailable) by_id_.Erase(id);
  co_return image;
}

Task<std::shared_ptr<const MachineImage>> MachineImages::Load(std::string id) {
  Query query("DescribeImages");
  query.Add("ImageId.1", id);
  Outcome<std::vector<MachineImage>> images = co_await Attempt(ec2_.List(std::move(query), &ReadImages));
  if (!images && driver::cloud::IsPassing(images.error())) images.error().Rethrow();
  if (!images) throw Error(Verdict::kFail, images.error().message());
  if (images->empty()) throw Error(Verdict::kFail, "there is no image " + Excerpt(id) + " in the cloud");
  co_return std::make_shared<const MachineImage>(std::move(images->front()));
}

void MachineImages::Clear() {
  by_filters_.Doubt();
  by_id_.Clear();
}

std::vector<Volume> ReadVolumes(const pugi::xml_node& root) {
  std::vector<Volume> volumes;
  for (const pugi::xml_node& item : Items(root, "volumeSet")) {
    Volume volume{TextAt(item, {"volumeId"}), ReadTagSet(item)};
    volume.instance = TextAt(item, {"attachmentSet", "item", "instanceId"});
    volume.type = TextAt(item, {"volumeType"});
    volume.size = std::max(0, NumberAt(item, {"size"}));
    volume.iops = std::max(0, NumberAt(item, {"iops"}));
    if (!volume.id.empty()) volumes.push_back(std::move(volume));
  }
  return volumes;
}

Task<std::vector<Volume>> ListUnusedVolumes(Ec2& ec2, std::string provider) {
  Query query("DescribeVolumes");
  query.AddFilter(std::string("tag:") + driver::cloud::kProviderKey, {std::move(provider)});
  query.AddFilter("status", {"available"});
  query.Add("MaxResults", 500);
  return ec2.List(std::move(query), &ReadVolumes);
}

Task<std::vector<Volume>> ListAllVolumes(Ec2& ec2) {
  Query query("DescribeVolumes");
  query.Add("MaxResults", 500);
  return ec2.List(std::move(query), &ReadVolumes);
}

Task<> DeleteVolume(Ec2& ec2, std::string id) {
  Query query("DeleteVolume");
  query.Add("VolumeId", std::move(id));
  return driver::cloud::EnsureGone(ec2.Call(std::move(query)));
}

}  // namespace nodepool::drivers::aws
