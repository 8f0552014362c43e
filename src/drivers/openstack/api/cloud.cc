#include "drivers/openstack/api/cloud.h"

#include <algorithm>

#include "drivers/openstack/network/addresses.h"
#include "net/tcp_probe.h"

namespace nodepool::drivers::openstack {

namespace {

constexpr int kProbedPort = 22;
constexpr const char* kListLogger = "nodepool.OpenStackAdapter";

std::set<std::string> ImagesToFind(const OpenstackProviderConfig& config) {
  std::set<std::string> names;
  for (const auto& [key, image] : config.cloud_images) {
    if (!image.is_id) names.insert(image.external_name);
  }
  return names;
}

}  // namespace

Cloud::Cloud(driver::cloud::AdapterEnvironment for_environment,
             std::shared_ptr<const OpenstackProviderConfig> provider, std::unique_ptr<net::HttpClient> client)
    : environment(std::move(for_environment)),
      config(std::move(provider)),
      http(std::move(client)),
      session(environment.loop, environment.blocking_pool, environment.random, *http, config->cloud_config,
              Session::Options{config->rate, {environment.observer, config->name, "openstack"}}),
      tasks(environment.loop, logger),
      lookups(session),
      images(session, tasks, environment.random, ImagesToFind(*config),
             [this] { environment.framework.CapacityChanged(); }),
      servers(tasks, environment.random, log::Logger(kListLogger),
              "servers of provider " + config->name.str(), [this] { return ListServers(session); }),
      floating_ips(tasks, environment.random, log::Logger(kListLogger),
                   "floating IPs of provider " + config->name.str(),
                   [this] { return ListFloatingIps(session); }),
      network_roles([this] { return ReadNetworkRoles(session); }),
      has_ipv6(HasIpv6Route()),
      probe([this](std::vector<std::string> addresses, SteadyTime deadline) {
        return net::FirstToAccept(loop(), std::move(addresses), kProbedPort, deadline);
      }) {}

void Cloud::DropLookups() {
  lookups.Clear();
  images.Clear();
  network_roles.Clear();
}

namespace {

Task<std::vector<FloatingAddress>> FindBySharedList(Cloud& cloud, Server server) {
  std::vector<FloatingAddress> found;
  bool has_network = co_await cloud.session.Has(Service::kNetwork);
  if (!has_network) co_return found;
  auto listing = co_await cloud.floating_ips.NotOlderThan(kListAge);
  bool may_have = std::ranges::any_of(*listing.items, [&server](const auto& entry) {
    const FloatingIp& ip = entry.second;
    auto leads_to = [&ip](const Address& address) { return address.text == ip.fixed_ipv4; };
    return !ip.port_id.empty() && std::ranges::any_of(server.addresses, leads_to);
  });
  if (may_have) found = co_await FindFloatingIpsOfPorts(cloud.session, server.id);
  co_return found;
}

}  // namespace

Task<std::vector<FloatingAddress>> FindHiddenFloatingIps(Cloud& cloud, Server server) {
  std::string id = server.id;
  Outcome<std::vector<FloatingAddress>> found = co_await Attempt(FindBySharedList(cloud, std::move(server)));
  if (found) co_return std::move(*found);
  cloud.logger.Warning("The floating IPs of server {} could not be read: {}", id, found.error().message());
  co_return std::vector<FloatingAddress>();
}

}  // namespace nodepool::drivers::openstack
