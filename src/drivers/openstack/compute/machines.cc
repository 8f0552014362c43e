#include "drivers/openstack/compute/machines.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/deadline.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/metadata.h"
#include "driver/records_environment.h"
#include "drivers/openstack/api/cloud.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/storage/images.h"
#include "drivers/openstack/storage/volumes.h"

namespace nodepool::drivers::openstack {

using ServerList = driver::cloud::api::ListCache<Servers>;
using driver::QuotaInformation;
using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;

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

namespace {

constexpr Duration kLostAnswerLimit = std::chrono::seconds(10);
constexpr VersionNumber kAutoNetwork{2, 37};

Task<> FindImage(const OpenstackConfig& config, CloudImages& images, const CreateParameters& parameters,
                 ServerParts& parts) {
  const OpenstackLabel& label = LabelOf(parameters);
  if (label.diskimage) {
    parts.image_name = label.diskimage->value;
    parts.image_id = parameters.image_external_id.value_or("");
    const OpenstackDiskImage* image = config.FindDiskImage(*label.diskimage);
    parts.config_drive = image != nullptr && image->config_drive;
    co_return;
  }
  const OpenstackCloudImage& image = config.cloud_images.at(label.cloud_image.value_or(""));
  parts.image_name = image.name;
  parts.config_drive = image.config_drive;
  parts.image_id = image.external_name;
  if (image.is_id) co_return;
  std::string name = image.external_name;
  parts.image_id = co_await images.Id(std::move(name));
}

Task<> FindNetworks(Cloud& cloud, const CreateParameters& parameters, ServerParts& parts) {
  for (const std::string& network : LabelOf(parameters).networks) {
    std::string name = network;
    std::string id = co_await cloud.lookups.NetworkId(std::move(name));
    parts.network_ids.push_back(std::move(id));
  }
  if (!parts.network_ids.empty()) co_return;
  const auto& configured = cloud.session.cloud().networks;
  if (std::ranges::any_of(configured, &NetworkSettings::is_default_interface)) {
    NetworkRoles roles = co_await cloud.addressing.network_roles.Get();
    if (roles.default_interface) parts.network_ids.push_back(roles.default_interface->id);
  }
  parts.takes_auto_network = co_await cloud.session.TakesMicroversion(kAutoNetwork);
}

Task<ServerParts> FindParts(Cloud& cloud, const CreateParameters& parameters) {
  ServerParts parts;
  co_await FindImage(cloud.config, cloud.images, parameters, parts);
  co_await FindNetworks(cloud, parameters, parts);
  std::vector<Flavor> flavors = co_await cloud.lookups.Flavors();
  parts.flavor_id = ChooseFlavor(flavors, LabelOf(parameters)).id;
  co_return parts;
}

// Whether the cloud may have carried out a call that failed.
bool MayHaveBeenDone(const Failure& failure) {
  try {
    failure.Rethrow();
  } catch (const net::HttpError& error) {
    return error.may_have_been_seen();
  } catch (const driver::cloud::api::ApiError& error) {
    return error.status() >= 500;
  } catch (...) {
    return false;
  }
}

Task<> WaitMade(ServerList& list, const std::string& mark, std::string& id) {
  auto is_made = [&](const Servers& servers) {
    for (const auto& [server_id, server] : servers) {
      auto found = server.metadata.find(driver::cloud::kAttemptKey);
      if (found != server.metadata.end() && found->second == mark) id = server_id;
    }
    return !id.empty();
  };
  co_await list.Until(is_made);
}

// The server of a creation whose answer was lost, by the attempt's mark; empty: none is listed.
Task<std::string> FindMade(Loop& loop, ServerList& list, const std::string& mark) {
  std::string id;
  SteadyTime deadline = loop.SteadyNow() + kLostAnswerLimit;
  co_await EndsBy(loop, deadline, "the search for a server", WaitMade(list, mark, id));
  co_return id;
}

Task<std::string> Submit(Cloud& cloud, const CreateParameters& parameters, const log::Logger& logger) {
  ServerParts parts = co_await FindParts(cloud, parameters);
  boost::json::object body = ServerBody(parameters, parts, ServerMetadata(parameters, parts, logger));
  Outcome<std::string> id = co_await Attempt(CreateServer(cloud.session, std::move(body)));
  if (StatusOf(id) == 400) cloud.DropLookups();
  if (!id && MayHaveBeenDone(id.error())) {
    std::string made = co_await FindMade(cloud.session.loop(), cloud.servers, parameters.attempt_mark);
    if (made.empty()) id.error().Rethrow();
    logger.Warning("Server {} was made although the call failed: {}", made, id.error().message());
    co_return made;
  }
  if (!id) id.error().Rethrow();
  co_return std::move(*id);
}

[[noreturn]] void ThrowFault(const Server& server) {
  std::string fault = server.fault.empty() ? "(no further information available)" : server.fault;
  std::string message = fmt::format("server {} is in status {}: {}", server.id, server.status, fault);
  if (MentionsQuota(fault)) throw Error(Verdict::kQuota, message);
  throw LaunchError(LaunchError::Kind::kStatus, message);
}

// Ends when the list shows the server as active. A server that was listed and no longer is was deleted by
// another client.
Task<Server> WaitActive(ServerList& list, std::string id) {
  auto is_active = [&id, was_listed = false](const Servers& servers) mutable {
    auto found = servers.find(id);
    bool is_listed = found != servers.end() && !found->second.is_deleted();
    if (was_listed && !is_listed) {
      throw LaunchError(LaunchError::Kind::kStatus,
                        fmt::format("server {} vanished while it was started", id));
    }
    was_listed = is_listed;
    if (is_listed && found->second.status == "ERROR") ThrowFault(found->second);
    return is_listed && found->second.status == "ACTIVE";
  };
  auto listing = co_await list.UntilStarted(is_active);
  co_return listing.items->at(id);
}

// Marks volumes so that one that outlives its server is found (ListMarked). An unmarked volume is normally
// deleted with the server.
Task<> MarkVolumes(Session& session, const Server& server, const CreateParameters& parameters,
                   const log::Logger& logger) {
  for (const std::string& volume : server.volumes) {
    std::string id = volume;
    std::map<std::string, std::string> marks = parameters.metadata;
    Outcome<> marked = co_await Attempt(MarkVolume(session, std::move(id), std::move(marks)));
    if (!marked)
      logger.Warning("Volume {} could not be marked as ours: {}", volume, marked.error().message());
  }
}

void FillAddresses(const std::string& cloud, const ChosenAddresses& addresses, Instance& instance,
                   const log::Logger& logger) {
  if (addresses.interface_ip.empty()) {
    throw LaunchError(LaunchError::Kind::kNetwork, "the server has no address");
  }
  if (addresses.is_guess) {
    logger.Warning(
        "No address of the server is known to be reachable; {} is used. Set private: true or name a network "
        "with default_interface: true for cloud {} in clouds.yaml",
        addresses.interface_ip, cloud);
  }
  instance.public_ipv4 = addresses.public_ipv4;
  instance.public_ipv6 = addresses.public_ipv6;
  instance.private_ipv4 = addresses.private_ipv4.empty() ? addresses.public_ipv4 : addresses.private_ipv4;
  instance.interface_ip = addresses.interface_ip;
}

}  // namespace

Instance Describe(const OpenstackProviderConfig& config, const Server& server) {
  Instance instance;
  instance.external_id = server.id;
  instance.name = server.name;
  instance.metadata = WithWholeNodeId(WithCurrentOwnerKeys(server.metadata));
  instance.host_id = server.host_id;
  instance.cloud = config.cloud_config.name;
  instance.region = config.region_name;
  if (!server.zone.empty()) instance.az = server.zone;
  return instance;
}

Task<Instance> CreateMachine(Cloud& cloud, MachineReport& machine, CreateParameters parameters) {
  const OpenstackLabel& label = LabelOf(parameters);
  machine.SetState("submit creating server");
  std::string id = co_await Submit(cloud, parameters, machine.logger());
  boost::json::value external_id(id);
  co_await machine.SetExternalId(std::move(external_id));
  machine.SetState("creating server");
  Server server = co_await WaitActive(cloud.servers, id);
  if (label.boot_from_volume) co_await MarkVolumes(cloud.session, server, parameters, machine.logger());
  bool wants_floating_ip = driver::cloud::As<OpenstackPool>(*parameters.pool).auto_floating_ip;
  ChosenAddresses addresses = co_await FindAddresses(cloud.addressing, machine, wants_floating_ip, server);
  machine.SetState("complete");
  Instance instance = Describe(cloud.config, server);
  FillAddresses(cloud.session.cloud().name, addresses, instance, machine.logger());
  const std::vector<Flavor>* flavors = cloud.lookups.KnownFlavors();
  if (flavors != nullptr) instance.quota = NeedOf(ChooseFlavor(*flavors, label), label);
  co_return instance;
}

}  // namespace nodepool::drivers::openstack
