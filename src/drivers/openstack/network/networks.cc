#include "drivers/openstack/network/networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address_v4.hpp>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;
using driver::cloud::api::PercentEncoded;

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
    // For these sets a name may mean several networks; each role below needs exactly one.
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
  // Read before the loop, which sets it: of several networks with a gateway the last one counts.
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
  // Only the search for a destination needs the gateways.
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

namespace {

using Wanted = std::function<bool(const Address&)>;

using Undecided = std::vector<std::string>;

// Floating addresses are preferred to fixed ones. With `undecided`, the address must be reachable from here.
std::string Best(const Server& server, const Wanted& wanted, Undecided* undecided = nullptr) {
  std::vector<Address> found;
  for (bool is_floating : {true, false}) {
    for (const Address& address : server.addresses) {
      if (address.is_floating == is_floating && wanted(address)) found.push_back(address);
    }
  }
  if (found.empty()) return "";
  if (undecided == nullptr || found.size() == 1) return found.front().text;
  auto open = std::ranges::find(found, true, &Address::accepts);
  if (open != found.end()) return open->text;
  for (const Address& address : found) undecided->push_back(address.text);
  return found.front().text;
}

std::string PublicIpv4(const Server& server, const NetworkRoles& roles, const CloudConfig& cloud,
                       Undecided* undecided) {
  if (!cloud.uses_external_network) return "";
  if (!server.access_ipv4.empty()) return server.access_ipv4;
  auto best = [&](const Wanted& wanted) {
    return Best(
        server, [&](const Address& a) { return a.version == 4 && wanted(a); }, undecided);
  };
  auto on = [&best](const std::string& network) {
    return best([&](const Address& a) { return a.network == network; });
  };
  for (const std::string& network : roles.external_ipv4) {
    if (std::string found = on(network); !found.empty()) return found;
  }
  std::string found = best([](const Address& a) { return a.is_floating; });
  if (found.empty()) found = on("public");
  if (found.empty()) found = best([](const Address& a) { return !IsReservedIpv4(a.text); });
  return found;
}

std::string PublicIpv6(const Server& server, const CloudConfig& cloud, Undecided* undecided) {
  if (cloud.forces_ipv4) return "";
  if (!server.access_ipv6.empty()) return server.access_ipv6;
  return Best(
      server, [](const Address& a) { return a.version == 6; }, undecided);
}

std::string PrivateIpv4(const Server& server, const NetworkRoles& roles, const CloudConfig& cloud,
                        Undecided* undecided) {
  if (!cloud.uses_internal_network) return "";
  // A floating address has the MAC of the port whose fixed address it leads to.
  std::string mac;
  for (const Address& address : server.addresses) {
    if (address.is_floating && mac.empty()) mac = address.mac;
  }
  auto on = [&](const std::string& network, bool must_be_fixed) {
    auto fits = [&](const Address& a) {
      bool fits_mac = mac.empty() || a.mac == mac;
      bool fits_kind = !must_be_fixed || (!a.is_floating && fits_mac);
      return a.version == 4 && a.network == network && fits_kind;
    };
    return Best(server, fits, undecided);
  };
  for (bool must_be_fixed : {true, false}) {
    for (const std::string& network : roles.internal_ipv4) {
      if (std::string found = on(network, must_be_fixed); !found.empty()) return found;
    }
  }
  std::string found = on("private", true);
  return found.empty() ? on("private", false) : found;
}

std::string OnDefaultInterface(const Server& server, const NetworkRoles& roles, bool uses_ipv6) {
  if (!roles.default_interface) return "";
  for (int version : {6, 4}) {
    if (version == 6 && !uses_ipv6) continue;
    std::string found = Best(server, [&](const Address& a) {
      return a.version == version && a.network == roles.default_interface->name;
    });
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace

ChosenAddresses ChooseAddresses(const Server& server, const NetworkRoles& roles, const CloudConfig& cloud,
                                bool has_ipv6) {
  ChosenAddresses chosen;
  Undecided* of_public = cloud.is_private ? nullptr : &chosen.undecided;
  Undecided* of_private = cloud.is_private ? &chosen.undecided : nullptr;
  chosen.public_ipv4 = PublicIpv4(server, roles, cloud, of_public);
  chosen.public_ipv6 = PublicIpv6(server, cloud, has_ipv6 ? of_public : nullptr);
  chosen.private_ipv4 = PrivateIpv4(server, roles, cloud, of_private);
  bool uses_ipv6 = has_ipv6 && !cloud.forces_ipv4;
  chosen.interface_ip = OnDefaultInterface(server, roles, uses_ipv6);
  if (chosen.interface_ip.empty() && cloud.is_private) chosen.interface_ip = chosen.private_ipv4;
  if (chosen.interface_ip.empty() && uses_ipv6) chosen.interface_ip = chosen.public_ipv6;
  if (chosen.interface_ip.empty()) chosen.interface_ip = chosen.public_ipv4;
  if (chosen.interface_ip.empty()) {
    chosen.interface_ip = Best(server, [](const Address& a) { return a.version == 4 && !a.is_floating; });
    if (chosen.interface_ip.empty()) {
      chosen.interface_ip = Best(server, [](const Address& a) { return !a.is_floating; });
    }
    chosen.is_guess = true;
  }
  return chosen;
}

bool NeedsFloatingIp(const Server& server, const ChosenAddresses& addresses, const NetworkRoles& roles,
                     const CloudConfig& cloud) {
  if (!cloud.has_floating_ips || cloud.is_private || !addresses.public_ipv4.empty()) return false;
  if (std::ranges::any_of(server.addresses, &Address::is_floating)) return false;
  return !server.addresses.empty() && !roles.floating_sources.empty();
}

bool IsReservedIpv4(const std::string& text) {
  struct Block {
    std::uint32_t network;
    int bits;
  };
  constexpr std::array kBlocks = {Block{0x00000000, 8},  Block{0x0A000000, 8},  Block{0x64400000, 10},
                                  Block{0x7F000000, 8},  Block{0xA9FE0000, 16}, Block{0xAC100000, 12},
                                  Block{0xC0000000, 24}, Block{0xC0000200, 24}, Block{0xC0A80000, 16},
                                  Block{0xC6120000, 15}, Block{0xC6336400, 24}, Block{0xCB007100, 24},
                                  Block{0xE0000000, 3}};
  boost::system::error_code error;
  auto address = boost::asio::ip::make_address_v4(text, error);
  if (error) return true;
  return std::ranges::any_of(kBlocks, [value = address.to_uint()](const Block& block) {
    return (value ^ block.network) >> (32 - block.bits) == 0;
  });
}

bool HasIpv6Route() {
  std::ifstream routes("/proc/net/ipv6_route");
  std::string line;
  while (std::getline(routes, line)) {
    std::istringstream fields(line);
    std::string destination, bits, source, source_bits, hop, metric, references, uses, flags, device;
    fields >> destination >> bits >> source >> source_bits >> hop >> metric >> references >> uses >> flags >>
        device;
    bool is_default = destination.find_first_not_of('0') == std::string::npos && bits == "00";
    if (is_default && device != "lo") return true;
  }
  return false;
}

namespace {

FloatingIp ReadFloatingIp(const json::object& entry) {
  FloatingIp ip;
  ip.id = TextIn(entry, "id");
  ip.address = TextIn(entry, "floating_ip_address");
  ip.status = TextIn(entry, "status");
  ip.port_id = TextIn(entry, "port_id");
  ip.fixed_ipv4 = TextIn(entry, "fixed_ip_address");
  return ip;
}

ApiCall NetworkCall(std::string path, std::string query) {
  ApiCall call;
  call.service = Service::kNetwork;
  call.path = std::move(path);
  call.query = std::move(query);
  return call;
}

}  // namespace

Task<FloatingIps> ListFloatingIps(Session& session) {
  std::string project = co_await session.ProjectId();
  ApiCall call = NetworkCall("/floatingips", project.empty() ? "" : "project_id=" + project);
  std::vector<FloatingIp> list = co_await List(session, std::move(call), "floatingips", &ReadFloatingIp);
  FloatingIps ips;
  for (FloatingIp& ip : list) {
    std::string id = ip.id;
    ips.insert_or_assign(std::move(id), std::move(ip));
  }
  co_return ips;
}

Task<std::vector<FloatingIp>> FindFloatingIpsOfPort(Session& session, std::string port_id) {
  ApiCall call = NetworkCall("/floatingips", "port_id=" + PercentEncoded(port_id));
  std::vector<FloatingIp> found = co_await List(session, std::move(call), "floatingips", &ReadFloatingIp);
  co_return found;
}

Task<> DeleteFloatingIp(Session& session, std::string id) {
  co_await session.Delete(Service::kNetwork, "/floatingips/" + id);
}

Port ReadPort(const json::object& entry) {
  Port port;
  port.id = TextIn(entry, "id");
  port.network_id = TextIn(entry, "network_id");
  port.mac = TextIn(entry, "mac_address");
  port.created_at = TextIn(entry, "created_at");
  port.device_owner = TextIn(entry, "device_owner");
  const json::array* fixed = ArrayIn(entry, "fixed_ips");
  if (fixed == nullptr) return port;
  for (const json::value& item : *fixed) {
    if (!item.is_object()) continue;
    std::string address = TextIn(item.as_object(), "ip_address");
    if (address.find('.') != std::string::npos) port.fixed_ipv4.push_back(std::move(address));
  }
  return port;
}

Task<std::vector<Port>> ListPortsOf(Session& session, std::string server_id) {
  ApiCall call = NetworkCall("/ports", "device_id=" + PercentEncoded(server_id));
  std::vector<Port> ports = co_await List(session, std::move(call), "ports", &ReadPort);
  co_return ports;
}

std::optional<FloatingTarget> ChooseTarget(std::vector<Port> ports, const NetworkRoles& roles) {
  if (ports.empty()) return std::nullopt;
  if (ports.size() > 1) {
    std::erase_if(ports, [&roles](const Port& port) { return port.network_id != roles.nat_destination; });
    if (ports.empty()) {
      throw Error(Verdict::kInvalid,
                  "the server has multiple ports, and none is on a network that is known as a valid NAT "
                  "destination; name one in clouds.yaml: networks: [{name: ..., nat_destination: true}]");
    }
    std::ranges::stable_sort(ports, std::greater<>(), &Port::created_at);
  }
  const Port& port = ports.front();
  if (port.fixed_ipv4.empty()) return std::nullopt;
  return FloatingTarget{port.id, port.mac, port.fixed_ipv4.front()};
}

Task<std::vector<FloatingAddress>> FindFloatingIpsOfPorts(Session& session, std::string server_id) {
  std::vector<FloatingAddress> found;
  std::vector<Port> ports = co_await ListPortsOf(session, std::move(server_id));
  for (const Port& port : ports) {
    std::string id = port.id;
    std::vector<FloatingIp> ips = co_await FindFloatingIpsOfPort(session, std::move(id));
    for (FloatingIp& ip : ips) found.push_back({std::move(ip), port.mac});
  }
  co_return found;
}

void AddTo(Server& server, const FloatingAddress& floating) {
  Address address;
  for (const Address& known : server.addresses) {
    if (known.text == floating.ip.fixed_ipv4) address.network = known.network;
  }
  address.text = floating.ip.address;
  address.mac = floating.mac;
  address.is_floating = true;
  server.addresses.push_back(std::move(address));
}

namespace {

// nullopt: the target has none.
Task<std::optional<FloatingIp>> FindBound(Session& session, FloatingTarget target) {
  std::vector<FloatingIp> ips = co_await FindFloatingIpsOfPort(session, target.port_id);
  auto found = std::ranges::find(ips, target.fixed_ipv4, &FloatingIp::fixed_ipv4);
  if (found == ips.end()) co_return std::nullopt;
  co_return *found;
}

}  // namespace

Task<FloatingIp> CreateFloatingIp(Session& session, std::string network_id, FloatingTarget target) {
  ApiCall call = NetworkCall("/floatingips", "");
  call.method = "POST";
  json::object body{{"floating_network_id", network_id},
                    {"port_id", target.port_id},
                    {"fixed_ip_address", target.fixed_ipv4}};
  call.body = json::object{{"floatingip", std::move(body)}};
  Outcome<ApiReply> reply = co_await Attempt(session.Call(std::move(call)));
  if (FailedWith(reply, Verdict::kConflict)) {
    std::optional<FloatingIp> bound = co_await FindBound(session, target);
    if (bound) co_return *bound;
  }
  if (!reply) reply.error().Rethrow();
  const json::object* entry = ObjectIn(reply->body, "floatingip");
  FloatingIp ip = entry == nullptr ? FloatingIp() : ReadFloatingIp(*entry);
  if (ip.id.empty() || ip.port_id != target.port_id) {
    throw driver::cloud::LaunchError(driver::cloud::LaunchError::Kind::kNetwork,
                                     "the cloud created a floating IP that is not bound as requested");
  }
  ip.fixed_ipv4 = target.fixed_ipv4;
  co_return ip;
}

}  // namespace nodepool::drivers::openstack
