#include <algorithm>
#include <map>
#include <set>

#include "async/attempt.h"
#include "drivers/aws/compute/disks.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/machines.h"
#include "drivers/aws/compute/quota.h"

namespace nodepool::drivers::aws {

using driver::cloud::Instance;
using driver::cloud::Resource;

namespace {

constexpr const char* kInstance = "instance";
constexpr const char* kVolume = "volume";
constexpr const char* kHost = "host";

std::string EndOf(const Ec2Instance& instance) {
  std::string text = "it is " + instance.state;
  return instance.reason_code.empty() ? text : text + ", " + instance.reason_code;
}

// What volumes use, by the instance that they are attached to; empty if no label's volumes have limits.
Task<std::map<std::string, driver::QuotaInformation>> UseOfVolumes(Ec2& ec2, const AwsConfig& config) {
  std::map<std::string, driver::QuotaInformation> used;
  if (!CountsVolumes(config)) co_return used;
  std::vector<Volume> volumes = co_await ListAllVolumes(ec2);
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
  cloud.types.WarnOfUnknown(types);
  std::map<std::string, driver::QuotaInformation> volumes = co_await UseOfVolumes(cloud.ec2, cloud.config);
  std::vector<Instance> machines;
  for (const auto& [id, instance] : instances) {
    if (instance.is_gone()) continue;
    machines.push_back(Describe(cloud, instance));
    if (auto found = volumes.find(id); found != volumes.end()) machines.back().quota.Add(found->second);
  }
  co_return machines;
}

Task<std::vector<Resource>> MarkedInstances(driver::cloud::api::ListCache<Ec2Instances>& instances) {
  auto listing = co_await instances.NotOlderThan(kListAge);
  std::vector<Resource> resources;
  for (const auto& [id, instance] : *listing.items) {
    bool is_going = instance.is_gone() || instance.state == "shutting-down";
    if (!is_going) resources.push_back({kInstance, id, instance.tags});
  }
  co_return resources;
}

Task<std::vector<Resource>> MarkedVolumes(Ec2& ec2, std::string provider) {
  std::vector<Volume> volumes = co_await ListUnusedVolumes(ec2, std::move(provider));
  std::vector<Resource> resources;
  for (Volume& volume : volumes) {
    resources.push_back({kVolume, std::move(volume.id), std::move(volume.tags), true});
  }
  co_return resources;
}

Task<std::vector<Resource>> MarkedHosts(Ec2& ec2, std::string provider) {
  Hosts hosts = co_await ListHostsOf(ec2, std::move(provider));
  std::vector<Resource> resources;
  for (auto& [id, host] : hosts) {
    if (!host.is_gone()) resources.push_back({kHost, id, std::move(host.tags)});
  }
  co_return resources;
}

Task<> DeleteMarked(AwsCloud& cloud, Resource resource) {
  if (resource.type == kVolume) {
    co_await DeleteVolume(cloud.ec2, std::move(resource.id));
  } else if (resource.type == kHost) {
    // Its instance, which has leaked with it, may be on its way out.
    auto is_empty = [&resource](const Ec2Instances& list) {
      return std::ranges::none_of(list, [&resource](const auto& entry) {
        return entry.second.host == resource.id && !entry.second.is_gone();
      });
    };
    co_await cloud.instances.Until(is_empty);
    co_await ReleaseHost(cloud.ec2, resource.id);
  } else {
    co_await cloud.terminations.Terminate(std::move(resource.id));
  }
}

Task<std::vector<boost::json::value>> MissingInstances(driver::cloud::api::ListCache<Ec2Instances>& instances,
                                                       std::vector<boost::json::value> ids) {
  auto listing = co_await instances.NotOlderThan(kListAge);
  std::erase_if(ids, [&](const boost::json::value& id) {
    auto found = listing.items->find(ReadExternalId(id).instance);
    return found != listing.items->end() && !found->second.is_lost();
  });
  co_return ids;
}

Task<std::vector<driver::cloud::AnnouncedEnd>> EndingInstances(AwsCloud& cloud,
                                                               std::vector<boost::json::value> ids) {
  auto listing = co_await cloud.instances.NotOlderThan(kListAge);
  std::vector<driver::cloud::AnnouncedEnd> ends;
  std::map<std::string, boost::json::value> running;  // spot instances
  for (boost::json::value& id : ids) {
    std::string name = ReadExternalId(id).instance;
    auto found = listing.items->find(name);
    if (found == listing.items->end()) continue;
    const Ec2Instance& instance = found->second;
    if (instance.is_lost()) {
      ends.push_back({std::move(id), EndOf(instance)});
    } else if (instance.is_spot) {
      running.emplace(std::move(name), std::move(id));
    }
  }
  if (running.empty()) co_return ends;
  Outcome<std::vector<SpotRequest>> marked = co_await Attempt(ListMarkedSpotRequests(cloud.ec2));
  if (!marked && ends.empty()) marked.error().Rethrow();
  if (!marked) co_return ends;
  for (const SpotRequest& request : *marked) {
    auto node = running.extract(request.instance);
    if (node) ends.push_back({std::move(node.mapped()), request.status + ": " + request.message});
  }
  co_return ends;
}

}  // namespace nodepool::drivers::aws
