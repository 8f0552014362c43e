#include "drivers/openstack/leaks.h"

#include <algorithm>

#include "driver/cloud/append_listed.h"
#include "driver/cloud/metadata.h"
#include "driver/records_environment.h"
#include "drivers/openstack/api/legacy_metadata.h"
#include "drivers/openstack/storage/images.h"
#include "drivers/openstack/storage/volumes.h"

namespace nodepool::drivers::openstack {

using driver::cloud::Resource;

namespace {

constexpr const char* kInstance = "instance";
constexpr const char* kImage = "image";
constexpr const char* kVolume = "volume";

// The old metadata item counts only if that is configured, and only with ids in the current form: other
// programs may have used the same item (D-69).
std::map<std::string, std::string> OwnerForLeaks(const Cloud& cloud, const Server& server) {
  if (!cloud.config->deletes_legacy_leaked || !HasOnlyOldOwner(server.metadata)) return server.metadata;
  std::map<std::string, std::string> metadata = WithCurrentOwnerKeys(server.metadata);
  auto node = metadata.find(driver::cloud::kNodeKey);
  bool is_todays = node != metadata.end() && node->second.size() == 10 &&
                   node->second.find_first_not_of("0123456789") == std::string::npos;
  return is_todays ? metadata : server.metadata;
}

bool BootsFromVolumes(const Cloud& cloud) {
  return std::ranges::any_of(cloud.config->pools, [](const auto& pool) {
    return std::ranges::any_of(pool.second->labels, [](const auto& label) {
      return dynamic_cast<const OpenstackLabel&>(*label.second).boot_from_volume;
    });
  });
}

Task<std::vector<Resource>> MarkedImages(Cloud& cloud) {
  std::string provider = cloud.config->name.str();
  std::vector<driver::ListedImage> images = co_await ListImagesOf(cloud.session, std::move(provider));
  std::vector<Resource> resources;
  for (driver::ListedImage& image : images) {
    resources.push_back({kImage, std::move(image.id), std::move(image.metadata)});
  }
  co_return resources;
}

// A volume that is attached, or being attached, is handled with its server.
Task<std::vector<Resource>> MarkedVolumes(Cloud& cloud) {
  std::vector<Volume> volumes = co_await ListVolumes(cloud.session);
  std::vector<Resource> resources;
  for (Volume& volume : volumes) {
    bool is_idle = volume.status == "available" || volume.status == "error";
    if (is_idle) resources.push_back({kVolume, std::move(volume.id), std::move(volume.metadata), true});
  }
  co_return resources;
}

}  // namespace

Task<std::vector<Resource>> ListMarked(Cloud& cloud) {
  auto listing = co_await cloud.servers.NotOlderThan(kListAge);
  std::vector<Resource> resources;
  for (const auto& [id, server] : *listing.items) {
    bool is_going = server.is_deleted() || server.task == "deleting";
    if (!is_going) resources.push_back({kInstance, id, OwnerForLeaks(cloud, server)});
  }
  // Without builds for this provider no image can have leaked, so save the call.
  if (!cloud.environment.records.images.BuildsIn(cloud.config->name).empty()) {
    Task<std::vector<Resource>> images = MarkedImages(cloud);
    co_await driver::cloud::AppendListed(cloud.logger, cloud.config->name, "images", std::move(images),
                                         resources);
  }
  if (BootsFromVolumes(cloud)) {
    Task<std::vector<Resource>> volumes = MarkedVolumes(cloud);
    co_await driver::cloud::AppendListed(cloud.logger, cloud.config->name, "volumes", std::move(volumes),
                                         resources);
  }
  co_return resources;
}

Task<std::vector<boost::json::value>> MissingServers(Cloud& cloud, std::vector<boost::json::value> ids) {
  auto listing = co_await cloud.servers.NotOlderThan(kListAge);
  std::erase_if(ids, [&](const boost::json::value& id) {
    auto server = id.is_string() ? listing.items->find(std::string(id.as_string())) : listing.items->end();
    return server != listing.items->end() && !server->second.is_deleted();
  });
  co_return ids;
}

Task<std::vector<driver::cloud::AnnouncedEnd>> EndedServers(Cloud& cloud,
                                                            std::vector<boost::json::value> ids) {
  auto listing = co_await cloud.servers.NotOlderThan(kListAge);
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

Task<> DeleteMarked(Cloud& cloud, Resource resource) {
  std::string id = std::move(resource.id);
  if (resource.type == kImage) {
    co_await DeleteImage(cloud.session, std::move(id));
  } else if (resource.type == kVolume) {
    co_await DeleteVolume(cloud.session, std::move(id));
  } else {
    co_await DeleteServer(cloud.session, std::move(id));
  }
}

}  // namespace nodepool::drivers::openstack
