#include "drivers/openstack/compute/create_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/deadline.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/own_types.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/compute/quota.h"
#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/compute/server_request.h"
#include "drivers/openstack/network/addresses.h"
#include "drivers/openstack/storage/volumes.h"

namespace nodepool::drivers::openstack {

using driver::QuotaInformation;
using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;

namespace {

constexpr Duration kFloatingIpLimit = std::chrono::seconds(60);
constexpr Duration kProbeLimit = std::chrono::seconds(5);
constexpr Duration kLostAnswerLimit = std::chrono::seconds(10);
constexpr VersionNumber kAutoNetwork{2, 37};

Task<> FindImage(Cloud& cloud, const CreateParameters& parameters, ServerParts& parts) {
  const OpenstackLabel& label = LabelOf(parameters);
  if (label.diskimage) {
    parts.image_name = label.diskimage->value;
    parts.image_id = parameters.image_external_id.value_or("");
    const OpenstackDiskImage* image = cloud.config->FindDiskImage(*label.diskimage);
    parts.config_drive = image != nullptr && image->config_drive;
    co_return;
  }
  const OpenstackCloudImage& image = cloud.config->cloud_images.at(label.cloud_image.value_or(""));
  parts.image_name = image.name;
  parts.config_drive = image.config_drive;
  parts.image_id = image.external_name;
  if (image.is_id) co_return;
  std::string name = image.external_name;
  parts.image_id = co_await cloud.images.Id(std::move(name));
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
    NetworkRoles roles = co_await cloud.network_roles.Get();
    if (roles.default_interface) parts.network_ids.push_back(roles.default_interface->id);
  }
  parts.takes_auto_network = co_await cloud.session.TakesMicroversion(kAutoNetwork);
}

Task<ServerParts> FindParts(Cloud& cloud, const CreateParameters& parameters) {
  ServerParts parts;
  co_await FindImage(cloud, parameters, parts);
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

Task<> WaitMade(Cloud& cloud, const std::string& mark, std::string& id) {
  auto is_made = [&](const Servers& servers) {
    for (const auto& [server_id, server] : servers) {
      auto found = server.metadata.find(driver::cloud::kAttemptKey);
      if (found != server.metadata.end() && found->second == mark) id = server_id;
    }
    return !id.empty();
  };
  co_await cloud.servers.Until(is_made);
}

// The server of a creation whose answer was lost, by the attempt's mark; empty: none is listed.
Task<std::string> FindMade(Cloud& cloud, const std::string& mark) {
  std::string id;
  SteadyTime deadline = cloud.loop().SteadyNow() + kLostAnswerLimit;
  co_await EndsBy(cloud.loop(), deadline, "the search for a server", WaitMade(cloud, mark, id));
  co_return id;
}

Task<std::string> Submit(Cloud& cloud, const CreateParameters& parameters, const log::Logger& logger) {
  ServerParts parts = co_await FindParts(cloud, parameters);
  boost::json::object body = ServerBody(parameters, parts, ServerMetadata(parameters, parts, logger));
  Outcome<std::string> id = co_await Attempt(CreateServer(cloud.session, std::move(body)));
  if (StatusOf(id) == 400) cloud.DropLookups();
  if (!id && MayHaveBeenDone(id.error())) {
    std::string made = co_await FindMade(cloud, parameters.attempt_mark);
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
Task<Server> WaitActive(Cloud& cloud, std::string id) {
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
  auto listing = co_await cloud.servers.UntilStarted(is_active);
  co_return listing.items->at(id);
}

Task<> WaitFloatingIp(Cloud& cloud, std::string id) {
  auto is_active = [&id](const FloatingIps& ips) {
    auto found = ips.find(id);
    return found != ips.end() && found->second.status == "ACTIVE";
  };
  co_await cloud.floating_ips.Until(is_active);
}

// Creates a floating address for the server and adds it to the server's addresses.
Task<> AddFloatingIp(Cloud& cloud, MachineReport& machine, const NetworkRoles& roles, Server& server) {
  machine.SetState("creating floating ip");
  std::vector<Port> ports = co_await ListPortsOf(cloud.session, server.id);
  std::optional<FloatingTarget> target = ChooseTarget(std::move(ports), roles);
  if (!target) co_return;
  std::string network = roles.floating_sources.front();
  FloatingTarget wanted = *target;
  FloatingIp ip = co_await CreateFloatingIp(cloud.session, std::move(network), std::move(wanted));
  cloud.floating_ip_of[server.id] = ip.id;
  machine.SetState("attaching floating ip");
  if (ip.status != "ACTIVE") {
    SteadyTime deadline = cloud.loop().SteadyNow() + kFloatingIpLimit;
    std::string what = "the floating IP " + ip.address + " becoming active";
    bool is_active = co_await EndsBy(cloud.loop(), deadline, what, WaitFloatingIp(cloud, ip.id));
    // The deletion of the server removes the address, too.
    if (!is_active) throw LaunchError(LaunchError::Kind::kNetwork, what + " timed out");
  }
  AddTo(server, {ip, target->mac});
}

// Marks volumes so that one that outlives its server is found (ListMarked). An unmarked volume is normally
// deleted with the server.
Task<> MarkVolumes(Cloud& cloud, const Server& server, const CreateParameters& parameters,
                   const log::Logger& logger) {
  for (const std::string& volume : server.volumes) {
    std::string id = volume;
    std::map<std::string, std::string> marks = parameters.metadata;
    Outcome<> marked = co_await Attempt(MarkVolume(cloud.session, std::move(id), std::move(marks)));
    if (!marked)
      logger.Warning("Volume {} could not be marked as ours: {}", volume, marked.error().message());
  }
}

// Chooses the first of several equally good addresses that accepts a connection (driver-openstack.md 9.3).
Task<> TryAddresses(Cloud& cloud, std::vector<std::string> addresses, Server& server) {
  SteadyTime deadline = cloud.loop().SteadyNow() + kProbeLimit;
  std::optional<std::string> open = co_await cloud.probe(std::move(addresses), deadline);
  for (Address& address : server.addresses) address.accepts = address.text == open;
}

// Creates a floating IP if one is wanted; otherwise finds those that nova does not show
// (driver-openstack.md 9.2).
Task<ChosenAddresses> FindAddresses(Cloud& cloud, MachineReport& machine, const CreateParameters& parameters,
                                    Server& server) {
  const CloudConfig& settings = cloud.session.cloud();
  NetworkRoles roles = co_await cloud.network_roles.Get();
  auto choose = [&] { return ChooseAddresses(server, roles, settings, cloud.has_ipv6); };
  ChosenAddresses addresses = choose();
  bool wants_floating_ip = driver::cloud::As<OpenstackPool>(*parameters.pool).auto_floating_ip;
  bool lacks_public = settings.has_floating_ips && !settings.is_private && addresses.public_ipv4.empty();
  if (wants_floating_ip && NeedsFloatingIp(server, addresses, roles, settings)) {
    co_await AddFloatingIp(cloud, machine, roles, server);
    addresses = choose();
  } else if (lacks_public) {
    std::vector<FloatingAddress> hidden = co_await FindHiddenFloatingIps(cloud, server);
    for (const FloatingAddress& floating : hidden) AddTo(server, floating);
    addresses = choose();
  }
  if (!addresses.undecided.empty()) {
    std::vector<std::string> undecided = addresses.undecided;
    co_await TryAddresses(cloud, std::move(undecided), server);
    addresses = choose();
  }
  co_return addresses;
}

void FillAddresses(const Cloud& cloud, const ChosenAddresses& addresses, Instance& instance,
                   const log::Logger& logger) {
  if (addresses.interface_ip.empty()) {
    throw LaunchError(LaunchError::Kind::kNetwork, "the server has no address");
  }
  if (addresses.is_guess) {
    logger.Warning(
        "No address of the server is known to be reachable; {} is used. Set private: true or name a network "
        "with default_interface: true for cloud {} in clouds.yaml",
        addresses.interface_ip, cloud.session.cloud().name);
  }
  instance.public_ipv4 = addresses.public_ipv4;
  instance.public_ipv6 = addresses.public_ipv6;
  instance.private_ipv4 = addresses.private_ipv4.empty() ? addresses.public_ipv4 : addresses.private_ipv4;
  instance.interface_ip = addresses.interface_ip;
}

}  // namespace

Instance Describe(const Cloud& cloud, const Server& server) {
  Instance instance;
  instance.external_id = server.id;
  instance.name = server.name;
  instance.metadata = WithWholeNodeId(WithCurrentOwnerKeys(server.metadata));
  instance.host_id = server.host_id;
  instance.cloud = cloud.session.cloud().name;
  instance.region = cloud.config->region_name;
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
  Server server = co_await WaitActive(cloud, id);
  if (label.boot_from_volume) co_await MarkVolumes(cloud, server, parameters, machine.logger());
  ChosenAddresses addresses = co_await FindAddresses(cloud, machine, parameters, server);
  machine.SetState("complete");
  Instance instance = Describe(cloud, server);
  FillAddresses(cloud, addresses, instance, machine.logger());
  const std::vector<Flavor>* flavors = cloud.lookups.KnownFlavors();
  if (flavors != nullptr) instance.quota = NeedOf(ChooseFlavor(*flavors, label), label);
  co_return instance;
}

}  // namespace nodepool::drivers::openstack
