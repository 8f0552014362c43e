#include "drivers/aws/images/snapshots.h"

#include <fmt/format.h>

#include "driver/cloud/adapter.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/instance.h"

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

}  // namespace nodepool::drivers::aws
