#include "drivers/openstack/network/addressing.h"

#include <algorithm>

#include "async/attempt.h"
#include "async/deadline.h"
#include "net/tcp_probe.h"

namespace nodepool::drivers::openstack {

using driver::cloud::LaunchError;
using driver::cloud::MachineReport;

namespace {

constexpr int kProbedPort = 22;
constexpr Duration kFloatingIpLimit = std::chrono::seconds(60);
constexpr Duration kProbeLimit = std::chrono::seconds(5);

Task<> WaitFloatingIp(driver::cloud::api::ListCache<FloatingIps>& floating_ips, std::string id) {
  auto is_active = [&id](const FloatingIps& ips) {
    auto found = ips.find(id);
    return found != ips.end() && found->second.status == "ACTIVE";
  };
  co_await floating_ips.Until(is_active);
}

// Creates a floating address for the server and adds it to the server's addresses.
Task<> AddFloatingIp(Addressing& addressing, MachineReport& machine, const NetworkRoles& roles,
                     Server& server) {
  machine.SetState("creating floating ip");
  std::vector<Port> ports = co_await ListPortsOf(addressing.session, server.id);
  std::optional<FloatingTarget> target = ChooseTarget(std::move(ports), roles);
  if (!target) co_return;
  std::string network = roles.floating_sources.front();
  FloatingTarget wanted = *target;
  FloatingIp ip = co_await CreateFloatingIp(addressing.session, std::move(network), std::move(wanted));
  addressing.floating_ip_of[server.id] = ip.id;
  machine.SetState("attaching floating ip");
  if (ip.status != "ACTIVE") {
    SteadyTime deadline = addressing.session.loop().SteadyNow() + kFloatingIpLimit;
    std::string what = "the floating IP " + ip.address + " becoming active";
    bool is_active = co_await EndsBy(addressing.session.loop(), deadline, what,
                                     WaitFloatingIp(addressing.floating_ips, ip.id));
    // The deletion of the server removes the address, too.
    if (!is_active) throw LaunchError(LaunchError::Kind::kNetwork, what + " timed out");
  }
  AddTo(server, {ip, target->mac});
}

// Chooses the first of several equally good addresses that accepts a connection (driver-openstack.md 9.3).
Task<> TryAddresses(Addressing& addressing, std::vector<std::string> addresses, Server& server) {
  SteadyTime deadline = addressing.session.loop().SteadyNow() + kProbeLimit;
  std::optional<std::string> open = co_await addressing.probe(std::move(addresses), deadline);
  for (Address& address : server.addresses) address.accepts = address.text == open;
}

Task<std::vector<FloatingAddress>> FindBySharedList(Addressing& addressing, Server server) {
  std::vector<FloatingAddress> found;
  bool has_network = co_await addressing.session.Has(Service::kNetwork);
  if (!has_network) co_return found;
  auto listing = co_await addressing.floating_ips.NotOlderThan(kListAge);
  bool may_have = std::ranges::any_of(*listing.items, [&server](const auto& entry) {
    const FloatingIp& ip = entry.second;
    auto leads_to = [&ip](const Address& address) { return address.text == ip.fixed_ipv4; };
    return !ip.port_id.empty() && std::ranges::any_of(server.addresses, leads_to);
  });
  if (may_have) found = co_await FindFloatingIpsOfPorts(addressing.session, server.id);
  co_return found;
}

}  // namespace

Addressing::Addressing(Session& of_cloud, TaskGroup& tasks, Random& random, const std::string& provider,
                       log::Logger for_faults)
    : session(of_cloud),
      logger(std::move(for_faults)),
      floating_ips(tasks, random, log::Logger("nodepool.OpenStackAdapter"),
                   "floating IPs of provider " + provider, [this] { return ListFloatingIps(session); }),
      network_roles([this] { return ReadNetworkRoles(session); }),
      has_ipv6(HasIpv6Route()),
      probe([this](std::vector<std::string> addresses, SteadyTime deadline) {
        return net::FirstToAccept(session.loop(), std::move(addresses), kProbedPort, deadline);
      }) {}

Task<ChosenAddresses> FindAddresses(Addressing& addressing, MachineReport& machine, bool wants_floating_ip,
                                    Server& server) {
  const CloudConfig& settings = addressing.session.cloud();
  NetworkRoles roles = co_await addressing.network_roles.Get();
  auto choose = [&] { return ChooseAddresses(server, roles, settings, addressing.has_ipv6); };
  ChosenAddresses addresses = choose();
  bool lacks_public = settings.has_floating_ips && !settings.is_private && addresses.public_ipv4.empty();
  if (wants_floating_ip && NeedsFloatingIp(server, addresses, roles, settings)) {
    co_await AddFloatingIp(addressing, machine, roles, server);
    addresses = choose();
  } else if (lacks_public) {
    std::vector<FloatingAddress> hidden = co_await FindHiddenFloatingIps(addressing, server);
    for (const FloatingAddress& floating : hidden) AddTo(server, floating);
    addresses = choose();
  }
  if (!addresses.undecided.empty()) {
    std::vector<std::string> undecided = addresses.undecided;
    co_await TryAddresses(addressing, std::move(undecided), server);
    addresses = choose();
  }
  co_return addresses;
}

Task<std::vector<FloatingAddress>> FindHiddenFloatingIps(Addressing& addressing, Server server) {
  std::string id = server.id;
  Outcome<std::vector<FloatingAddress>> found =
      co_await Attempt(FindBySharedList(addressing, std::move(server)));
  if (found) co_return std::move(*found);
  addressing.logger.Warning("The floating IPs of server {} could not be read: {}", id,
                            found.error().message());
  co_return std::vector<FloatingAddress>();
}

}  // namespace nodepool::drivers::openstack
