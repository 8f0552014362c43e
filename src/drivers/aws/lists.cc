#include "drivers/aws/lists.h"

#include <map>
#include <set>

#include "async/attempt.h"
#include "drivers/aws/compute/quota.h"
#include "drivers/aws/storage/volumes.h"

namespace nodepool::drivers::aws {

using driver::cloud::Instance;
using driver::cloud::Resource;

namespace {

constexpr const char* kInstance = "instance";
constexpr const char* kVolume = "volume";

void WarnOfOddTypes(AwsCloud& cloud, const std::set<std::string>& types) {
  for (const std::string& type : types) {
    if (cloud.types.Find(type) != nullptr || !cloud.odd_types.insert(type).second) continue;
    cloud.logger.Warning("The size of instance type {} is not known; an instance of it counts as one instance only",
                         type);
  }
}

// What volumes use, by the instance that they are attached to; empty if no label's volumes have limits.
Task<std::map<std::string, driver::QuotaInformation>> UseOfVolumes(AwsCloud& cloud) {
  std::map<std::string, driver::QuotaInformation> used;
  if (!CountsVolumes(*cloud.config)) co_return used;
  std::vector<Volume> volumes = co_await ListAllVolumes(cloud.ec2);
  for (const Volume& volume : volumes) {
    if (!volume.instance.empty()) used[volume.instance].Add(UseOf(volume));
  }
  co_return used;
}

}  // namespace

Task<std::vector<Instance>> ListMachines(AwsCloud& cloud) {
  Ec2Instances instances = co_await ListAllInstances(cloud.ec2);
  std::set<std::string> types;
  for (const auto& [id, instance] : instances) types.insert(instance.type);
  co_await cloud.types.Learn(types);
  WarnOfOddTypes(cloud, types);
  std::map<std::string, driver::QuotaInformation> volumes = co_await UseOfVolumes(cloud);
  std::vector<Instance> machines;
  for (const auto& [id, instance] : instances) {
    if (instance.is_gone()) continue;
    machines.push_back(Describe(cloud, instance));
    if (auto found = volumes.find(id); found != volumes.end()) machines.back().quota.Add(found->second);
  }
  co_return machines;
}

Task<std::vector<Resource>> ListMarked(AwsCloud& cloud) {
  auto listing = co_await cloud.instances.NotOlderThan(kListAge);
  std::vector<Resource> resources;
  for (const auto& [id, instance] : *listing.items) {
    bool is_going = instance.is_gone() || instance.state == "shutting-down";
    if (!is_going) resources.push_back({kInstance, id, instance.tags});
  }
  std::string provider = cloud.config->name.str();
  Outcome<std::vector<Volume>> volumes = co_await Attempt(ListUnusedVolumes(cloud.ec2, std::move(provider)));
  if (!volumes) {
    cloud.logger.Warning(
        "The volumes of provider {} could not be listed; leaked ones are searched for in the next sweep: {}",
        cloud.config->name, volumes.error().message());
    co_return resources;
  }
  for (Volume& volume : *volumes) {
    resources.push_back({kVolume, std::move(volume.id), std::move(volume.tags), true});
  }
  co_return resources;
}

Task<> DeleteMarked(AwsCloud& cloud, Resource resource) {
  if (resource.type == kVolume) {
    co_await DeleteVolume(cloud.ec2, std::move(resource.id));
  } else {
    co_await cloud.terminations.Terminate(std::move(resource.id));
  }
}

Task<std::vector<boost::json::value>> MissingInstances(AwsCloud& cloud, std::vector<boost::json::value> ids) {
  auto listing = co_await cloud.instances.NotOlderThan(kListAge);
  std::erase_if(ids, [&](const boost::json::value& id) {
    auto found = listing.items->find(InstanceIn(id));
    return found != listing.items->end() && !found->second.is_lost();
  });
  co_return ids;
}

}  // namespace nodepool::drivers::aws
