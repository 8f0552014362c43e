#include "drivers/openstack/compute/machines.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/own_types.h"
#include "driver/records_environment.h"
#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/storage/images.h"
#include "drivers/openstack/storage/volumes.h"

namespace nodepool::drivers::openstack {

using driver::cloud::MachineReport;
using ServerList = driver::cloud::api::ListCache<Servers>;

namespace {

// The number of consecutive lists with the server in ERROR and nova idle that prove a failed deletion.
constexpr int kListsOfFailure = 3;

bool MayHaveFloatingIps(const OpenstackProviderConfig& config) {
  return config.cloud_config.has_floating_ips &&
         driver::cloud::AnyPool<OpenstackPool>(config, &OpenstackPool::auto_floating_ip);
}

// Finds them by the server's ports: an address that nova shows may belong to another server by now. If nova
// shows none, it may hide them (driver-openstack.md 9.2).
Task<std::vector<std::string>> FindIdsOf(Addressing& addressing, const Server& server) {
  std::vector<std::string> ids;
  std::vector<FloatingAddress> found;
  if (std::ranges::any_of(server.addresses, &Address::is_floating)) {
    found = co_await FindFloatingIpsOfPorts(addressing.session, server.id);
  } else if (server.status == "ACTIVE") {
    found = co_await FindHiddenFloatingIps(addressing, server);
  }
  for (const FloatingAddress& floating : found) ids.push_back(floating.ip.id);
  co_return ids;
}

Task<> DeleteFloatingIps(Addressing& addressing, ServerList& list, MachineReport& machine,
                         std::string server_id) {
  std::vector<std::string> ids;
  if (auto known = addressing.floating_ip_of.find(server_id); known != addressing.floating_ip_of.end()) {
    ids.push_back(known->second);
  } else {
    auto listing = co_await list.NotOlderThan(std::chrono::seconds(2));
    auto server = listing.items->find(server_id);
    if (server == listing.items->end()) co_return;
    ids = co_await FindIdsOf(addressing, server->second);
  }
  for (const std::string& ip_id : ids) {
    machine.SetState("deleting floating ip");
    std::string id = ip_id;
    co_await DeleteFloatingIp(addressing.session, std::move(id));
  }
  addressing.floating_ip_of.erase(server_id);
}

// A predicate for consecutive lists: whether the server is gone. Error(kRetry): the cloud could not delete
// it.
class IsGone {
 public:
  explicit IsGone(std::string id) : id_(std::move(id)) {}

  bool operator()(const Servers& servers) {
    auto found = servers.find(id_);
    if (found == servers.end() || found->second.is_deleted()) return true;
    const Server& server = found->second;
    bool has_failed = server.status == "ERROR" && server.task.empty();
    failures_ = has_failed ? failures_ + 1 : 0;
    if (failures_ < kListsOfFailure) return false;
    throw Error(Verdict::kRetry, fmt::format("the cloud could not delete server {}: {}", id_,
                                             server.fault.empty() ? "it is in status ERROR" : server.fault));
  }

 private:
  std::string id_;
  int failures_ = 0;
};

}  // namespace

Task<> DeleteMachine(Cloud& cloud, MachineReport& machine, std::string id) {
  if (MayHaveFloatingIps(cloud.config))
    co_await DeleteFloatingIps(cloud.addressing, cloud.servers, machine, id);
  machine.SetState("delete server");
  bool was_there = co_await DeleteServer(cloud.session, id);
  if (!was_there) co_return;
  machine.SetState("deleting server");
  IsGone is_gone(id);
  co_await cloud.servers.Until(is_gone);
}

using driver::cloud::Resource;

namespace {

constexpr const char* kInstance = "instance";
constexpr const char* kImage = "image";
constexpr const char* kVolume = "volume";

// The old metadata item counts only if that is configured, and only with ids in the current form: other
// programs may have used the same item (D-69).
std::map<std::string, std::string> OwnerForLeaks(const OpenstackConfig& config, const Server& server) {
  if (!config.deletes_legacy_leaked || !HasOnlyOldOwner(server.metadata)) return server.metadata;
  std::map<std::string, std::string> metadata = WithCurrentOwnerKeys(server.metadata);
  auto node = metadata.find(driver::cloud::kNodeKey);
  bool is_todays = node != metadata.end() && node->second.size() == 10 &&
                   node->second.find_first_not_of("0123456789") == std::string::npos;
  return is_todays ? metadata : server.metadata;
}

Task<std::vector<Resource>> MarkedImages(Session& session, std::string provider) {
  std::vector<driver::ListedImage> images = co_await ListImagesOf(session, std::move(provider));
  std::vector<Resource> resources;
  for (driver::ListedImage& image : images) {
    resources.push_back({kImage, std::move(image.id), std::move(image.metadata)});
  }
  co_return resources;
}

// A volume that is attached, or being attached, is handled with its server.
Task<std::vector<Resource>> MarkedVolumes(Session& session) {
  std::vector<Volume> volumes = co_await ListVolumes(session);
  std::vector<Resource> resources;
  for (Volume& volume : volumes) {
    bool is_idle = volume.status == "available" || volume.status == "error";
    if (is_idle) resources.push_back({kVolume, std::move(volume.id), std::move(volume.metadata), true});
  }
  co_return resources;
}

}  // namespace

Task<std::vector<Resource>> ListMarked(Cloud& cloud, const driver::cloud::Framework& framework) {
  auto listing = co_await cloud.servers.NotOlderThan(kListAge);
  std::vector<Resource> resources;
  for (const auto& [id, server] : *listing.items) {
    bool is_going = server.is_deleted() || server.task == "deleting";
    if (!is_going) resources.push_back({kInstance, id, OwnerForLeaks(cloud.config, server)});
  }
  // Without builds for this provider no image can have leaked, so save the call.
  if (framework.HasImages()) {
    Task<std::vector<Resource>> images = MarkedImages(cloud.session, cloud.config.name.str());
    co_await driver::cloud::AppendListed(cloud.logger, cloud.config.name, "images", std::move(images),
                                         resources);
  }
  if (driver::cloud::AnyLabel<OpenstackLabel>(cloud.config, &OpenstackLabel::boot_from_volume)) {
    Task<std::vector<Resource>> volumes = MarkedVolumes(cloud.session);
    co_await driver::cloud::AppendListed(cloud.logger, cloud.config.name, "volumes", std::move(volumes),
                                         resources);
  }
  co_return resources;
}

Task<std::vector<boost::json::value>> MissingServers(ServerList& list, std::vector<boost::json::value> ids) {
  auto listing = co_await list.NotOlderThan(kListAge);
  std::erase_if(ids, [&](const boost::json::value& id) {
    auto server = id.is_string() ? listing.items->find(std::string(id.as_string())) : listing.items->end();
    return server != listing.items->end() && !server->second.is_deleted();
  });
  co_return ids;
}

Task<std::vector<driver::cloud::AnnouncedEnd>> EndedServers(ServerList& list,
                                                            std::vector<boost::json::value> ids) {
  auto listing = co_await list.NotOlderThan(kListAge);
  std::vector<driver::cloud::AnnouncedEnd> ends;
  for (boost::json::value& id : ids) {
    if (!id.is_string()) continue;
    auto found = listing.items->find(std::string(id.as_string()));
    if (found == listing.items->end()) continue;
    const std::string& status = found->second.status;
    bool has_ended = found->second.is_deleted() || status == "SHUTOFF" || status == "SOFT_DELETED";
    if (has_ended) ends.push_back({std::move(id), "it is in status " + status});
  }
  co_return ends;
}

Task<> DeleteMarked(Session& session, Resource resource) {
  std::string id = std::move(resource.id);
  if (resource.type == kImage) {
    co_await DeleteImage(session, std::move(id));
  } else if (resource.type == kVolume) {
    co_await DeleteVolume(session, std::move(id));
  } else {
    co_await DeleteServer(session, std::move(id));
  }
}

}  // namespace nodepool::drivers::openstack
