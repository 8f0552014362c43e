#include "drivers/openstack/cloud.h"

#include "drivers/openstack/addresses.h"
#include "drivers/openstack/api_name.h"
#include "net/tcp_probe.h"

namespace nodepool::drivers::openstack {

namespace {

constexpr int kProbedPort = 22;

}  // namespace

Cloud::Cloud(driver::ProviderEnvironment surroundings,
             std::shared_ptr<const OpenstackProviderConfig> provider, std::unique_ptr<net::HttpClient> client)
    : environment(std::move(surroundings)),
      config(std::move(provider)),
      http(std::move(client)),
      session(environment.loop, environment.blocking_pool, environment.random, *http, config->cloud_config,
              Session::Options{config->rate, [this](const ApiCallEnd& end) { Tell(end); }}),
      tasks(environment.loop, logger),
      lookups(session),
      servers(tasks, environment.random, "servers of provider " + config->name.str(),
              [this] { return ListServers(session); }),
      floating_ips(tasks, environment.random, "floating IPs of provider " + config->name.str(),
                   [this] { return ListFloatingIps(session); }),
      network_roles([this](int) { return ReadNetworkRoles(session); }),
      has_ipv6(HasIpv6Route()),
      probe([this](std::vector<std::string> addresses, SteadyTime deadline) {
        return net::FirstToAccept(loop(), std::move(addresses), kProbedPort, deadline);
      }) {}

void Cloud::Tell(const ApiCallEnd& end) const {
  if (environment.observer == nullptr) return;
  driver::ApiCall call;
  call.provider = config->name;
  call.driver = "openstack";
  call.service = ToString(end.service);
  call.method = end.method;
  call.name = ApiName(end.path);
  if (end.status != 0) call.status = end.status;
  call.duration = end.took;
  environment.observer->ApiCallEnded(call);
}

void Cloud::Forget() {
  lookups.Forget();
  network_roles.Clear();
}

}  // namespace nodepool::drivers::openstack
