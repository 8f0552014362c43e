#include "drivers/libvirt/machine/boot.h"

#include <fmt/format.h>

#include "drivers/libvirt/placement/capacity.h"

namespace nodepool::drivers::libvirt {

namespace {

// An earlier try may have started the machine although its answer was lost.
Task<> StartUnlessRunning(Creation& creation, Hypervisor& host, std::string xml) {
  if (creation.host.IsListed(creation.id.uuid)) co_return;
  creation.host.Watch(creation.id.uuid);
  co_await host.StartDomain(std::move(xml));
}

}  // namespace

NewDomain DescribeOnHost(const Creation& creation, DomainDisks disks) {
  NewDomain domain = DescribeDomain(creation.id, creation.label, creation.parameters, std::move(disks));
  domain.uses_kvm = creation.host.uses_kvm();
  domain.metadata[kDiskKey] = fmt::format("{}", creation.need.disk);
  if (domain.network.empty()) domain.network = creation.host.config().network;
  return domain;
}

Task<> Boot(Creation& creation, DomainDisks disks) {
  std::string xml = DomainXml(DescribeOnHost(creation, std::move(disks)));
  auto start = [&creation, &xml](Hypervisor& hypervisor) {
    return StartUnlessRunning(creation, hypervisor, xml);
  };
  co_await creation.Do(start);
}

}  // namespace nodepool::drivers::libvirt
