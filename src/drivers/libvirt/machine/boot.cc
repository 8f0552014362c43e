#include "drivers/libvirt/machine/boot.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "drivers/libvirt/network/forwarded_ports.h"
#include "drivers/libvirt/placement/capacity.h"

namespace nodepool::drivers::libvirt {

namespace {

// A port of the host that another program has shows only when a machine is started with it.
constexpr int kMostTakenPorts = 5;

// An earlier try may have started the machine although its answer was lost.
Task<> StartUnlessRunning(Creation& creation, Hypervisor& hypervisor, std::string xml) {
  if (creation.host.IsListed(creation.id.uuid)) co_return;
  creation.host.Watch(creation.id.uuid);
  co_await hypervisor.StartDomain(std::move(xml));
}

Task<> Start(Creation& creation, const NewDomain& domain) {
  std::string xml = DomainXml(domain);
  auto start = [&creation, &xml](Hypervisor& hypervisor) {
    return StartUnlessRunning(creation, hypervisor, xml);
  };
  co_await creation.Do(start);
}

// Of all machines on the host, also those that are about to be started, and of what else was found to have
// one.
std::set<int> PortsOn(const Creation& creation, const std::vector<DomainInfo>& domains) {
  std::set<int> ports = creation.host.refused_ports().At(creation.site.environment.loop.SteadyNow());
  for (const DomainInfo& domain : domains) {
    auto port = domain.metadata.find(kPortKey);
    if (port != domain.metadata.end()) ports.insert(std::atoi(port->second.c_str()));
  }
  for (const auto& [uuid, entry] : creation.site.ledger.entries()) {
    if (entry.host == creation.host.name()) ports.insert(entry.port);
  }
  return ports;
}

// Nothing is awaited between the choice and its entry in the ledger.
int TakePort(Creation& creation, const std::set<int>& taken) {
  std::optional<int> port = FreePort(taken, creation.site.environment.random);
  if (!port) {
    throw Error(Verdict::kQuota,
                fmt::format("all ports for machines of host {} are in use", creation.host.name()));
  }
  creation.site.ledger.SetPort(creation.id, *port);
  return *port;
}

Task<std::optional<int>> StartAtPort(Creation& creation, NewDomain domain) {
  for (int refused = 0;; ++refused) {
    std::vector<DomainInfo> domains = co_await creation.host.Domains();
    int port = TakePort(creation, PortsOn(creation, domains));
    domain.metadata[kPortKey] = fmt::format("{}", port);
    domain.forwarded = ForwardedPort{BindAddress(creation.host.config().address), port,
                                     creation.label.connection.connection_port};
    Outcome<> started = co_await Attempt(Start(creation, domain));
    if (started) co_return port;
    Error fault(started.error().verdict(), started.error().message());
    if (!IsPortTaken(fault)) started.error().Rethrow();
    creation.host.refused_ports().Add(port, creation.site.environment.loop.SteadyNow());
    if (refused == kMostTakenPorts) started.error().Rethrow();
  }
}

}  // namespace

NewDomain DescribeOnHost(const Creation& creation, DomainDisks disks) {
  NewDomain domain =
      DescribeDomain(creation.id, creation.label, creation.parameters, creation.network(), std::move(disks));
  domain.uses_kvm = creation.host.uses_kvm();
  domain.metadata[kDiskKey] = fmt::format("{}", creation.need.disk);
  return domain;
}

Task<std::optional<int>> Boot(Creation& creation, DomainDisks disks) {
  NewDomain domain = DescribeOnHost(creation, std::move(disks));
  if (creation.network().is_user()) co_return co_await StartAtPort(creation, std::move(domain));
  co_await Start(creation, domain);
  co_return std::nullopt;
}

}  // namespace nodepool::drivers::libvirt
