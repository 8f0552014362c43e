#include "drivers/aws/storage/volumes.h"

#include <algorithm>

#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/instance.h"

namespace nodepool::drivers::aws {

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
