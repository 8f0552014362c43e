#include <fmt/format.h>

#include <algorithm>

#include "async/deadline.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/own_types.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/compute/machines.h"
#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/network/addressing.h"
#include "drivers/openstack/storage/volumes.h"

namespace nodepool::drivers::openstack {

using driver::QuotaInformation;
using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;
using ServerList = driver::cloud::api::ListCache<Servers>;

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
