#include "drivers/openstack/network/addresses.h"

#include <algorithm>
#include <array>
#include <boost/asio/ip/address_v4.hpp>
#include <fstream>
#include <functional>
#include <sstream>

namespace nodepool::drivers::openstack {

namespace {

using Wanted = std::function<bool(const Address&)>;

using Undecided = std::vector<std::string>;

// The floating ones count before the fixed ones. With `undecided` the address is to be
// reached from here.
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

}  // namespace nodepool::drivers::openstack
