#include "drivers/openstack/network/networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

Network ReadNetwork(const json::object& entry) {
  Network network;
  network.id = TextIn(entry, "id");
  network.name = TextIn(entry, "name");
  network.is_external = TruthIn(entry, "router:external");
  network.is_physical = !TextIn(entry, "provider:physical_network").empty();
  return network;
}

// The network of the subnet if it has a gateway, else empty.
std::string ReadGateway(const json::object& entry) {
  return TextIn(entry, "gateway_ip").empty() ? "" : TextIn(entry, "network_id");
}

// The network of an active router's gateway, else empty.
std::string ReadGatewayNetwork(const json::object& entry) {
  const json::object* gateway = ObjectIn(entry, "external_gateway_info");
  return gateway == nullptr || !TruthIn(entry, "admin_state_up") ? "" : TextIn(*gateway, "network_id");
}

// If no network is listed as external, a router may still refer to one (driver-openstack.md 10.1).
Task<> FindSourceByRouter(Session& session, NetworkRoles& roles) {
  ApiCall call;
  call.service = Service::kNetwork;
  call.path = "/routers";
  std::vector<std::string> networks = co_await List(session, std::move(call), "routers", &ReadGatewayNetwork);
  auto found = std::ranges::find_if(networks, [](const std::string& id) { return !id.empty(); });
  if (found != networks.end()) roles.floating_sources.push_back(*found);
}

// The networks that a setting names.
std::vector<Network> Named(const std::vector<Network>& networks, const CloudConfig& cloud,
                           const std::string& name_or_id) {
  std::vector<Network> found;
  for (const Network& network : networks) {
    if (network.name == name_or_id || network.id == name_or_id) found.push_back(network);
  }
  if (found.empty()) {
    throw Error(Verdict::kInvalid,
                fmt::format("clouds.yaml names a network {} for cloud {}, which does not exist",
                            Excerpt(name_or_id), cloud.name));
  }
  return found;
}

Network OnlyOne(const std::vector<Network>& networks, const CloudConfig& cloud,
                const std::string& name_or_id) {
  std::vector<Network> found = Named(networks, cloud, name_or_id);
  if (found.size() > 1) {
    throw Error(Verdict::kInvalid,
                fmt::format("clouds.yaml names a network {} for cloud {}, and there are {} of it",
                            Excerpt(name_or_id), cloud.name, found.size()));
  }
  return found.front();
}

}  // namespace

NetworkRoles ClassifyNetworks(const std::vector<Network>& networks, const CloudConfig& cloud) {
  NetworkRoles roles;
  std::set<std::string> configured_external;
  std::set<std::string> configured_internal;
  bool has_nat_source = false;
  for (const NetworkSettings& settings : cloud.networks) {
    std::vector<Network> named = Named(networks, cloud, settings.name);
    for (const Network& network : named) {
      if (!settings.routes_ipv4_externally) continue;
      (*settings.routes_ipv4_externally ? configured_external : configured_internal).insert(network.id);
    }
    if (settings.is_nat_source) {
      has_nat_source = true;
      roles.floating_sources.push_back(OnlyOne(networks, cloud, settings.name).id);
    }
    if (settings.is_nat_destination) roles.nat_destination = OnlyOne(networks, cloud, settings.name).id;
    if (settings.is_default_interface) roles.default_interface = OnlyOne(networks, cloud, settings.name);
  }
  bool has_nat_destination = roles.nat_destination.has_value();
  for (const Network& network : networks) {
    bool is_external_by_default = network.is_external || network.is_physical;
    if (configured_external.contains(network.id) ||
        (is_external_by_default && !configured_internal.contains(network.id))) {
      roles.external_ipv4.push_back(network.name);
    }
    if (configured_internal.contains(network.id) ||
        (!is_external_by_default && !configured_external.contains(network.id))) {
      roles.internal_ipv4.push_back(network.name);
    }
    if (!has_nat_source && network.is_external) roles.floating_sources.push_back(network.id);
    if (!has_nat_destination && network.has_gateway) roles.nat_destination = network.id;
  }
  return roles;
}

Task<NetworkRoles> ReadNetworkRoles(Session& session) {
  const CloudConfig& cloud = session.cloud();
  bool has_network = co_await session.Has(Service::kNetwork);
  if (!has_network || (!cloud.uses_external_network && !cloud.uses_internal_network))
    co_return NetworkRoles();
  ApiCall call;
  call.service = Service::kNetwork;
  call.path = "/networks";
  std::vector<Network> networks = co_await List(session, std::move(call), "networks", &ReadNetwork);
  bool has_nat_destination = std::ranges::any_of(cloud.networks, &NetworkSettings::is_nat_destination);
  if (!has_nat_destination) {
    ApiCall subnet_call;
    subnet_call.service = Service::kNetwork;
    subnet_call.path = "/subnets";
    std::vector<std::string> with_gateway =
        co_await List(session, std::move(subnet_call), "subnets", &ReadGateway);
    std::set<std::string> ids(with_gateway.begin(), with_gateway.end());
    for (Network& network : networks) network.has_gateway = ids.contains(network.id);
  }
  NetworkRoles roles = ClassifyNetworks(networks, cloud);
  bool may_need_source = cloud.has_floating_ips && !cloud.is_private;
  if (roles.floating_sources.empty() && may_need_source) co_await FindSourceByRouter(session, roles);
  co_return roles;
}

}  // namespace nodepool::drivers::openstack
