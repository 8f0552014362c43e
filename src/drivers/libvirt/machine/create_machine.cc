#include "drivers/libvirt/machine/create_machine.h"

#include <fmt/format.h>

#include "async/cleanup.h"
#include "drivers/libvirt/machine/make_disks.h"
#include "drivers/libvirt/placement/capacity.h"

namespace nodepool::drivers::libvirt {

using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;

namespace {

const LibvirtLabel& LabelOf(const CreateParameters& parameters) {
  return dynamic_cast<const LibvirtLabel&>(*parameters.label);
}

// Without a host that can be used the launch waits, like without room.
void CheckUsable(Site& site) {
  if (!site.Usable().empty()) return;
  throw Error(Verdict::kQuota, fmt::format("no host can be used; host {}: {}", site.hosts.front()->name(),
                                           site.hosts.front()->fault()->message()));
}

Task<Host*> Choose(Site& site, const CreateParameters& parameters, const Need& need) {
  const auto& pool = dynamic_cast<const LibvirtPool&>(*parameters.pool);
  std::vector<HostRoom> rooms =
      co_await ReadRooms(site, pool, LabelOf(parameters), parameters.image_external_id);
  std::expected<std::string, NoHost> chosen = ChooseHost(rooms, need, site.config->placement);
  if (chosen) co_return &site.At(*chosen);
  if (chosen.error().is_forever) {
    throw Error(Verdict::kInvalid, fmt::format("no host is large enough for label {} ({})",
                                               parameters.label->name, chosen.error().reasons));
  }
  throw Error(Verdict::kQuota, fmt::format("no host has room for label {} ({})", parameters.label->name,
                                           chosen.error().reasons));
}

// An earlier try may have started the machine although its answer was lost.
Task<> StartUnlessRunning(Creation& creation, Hypervisor& host, std::string xml) {
  if (creation.host.IsListed(creation.id.uuid)) co_return;
  creation.host.Watch(creation.id.uuid);
  co_await host.StartDomain(std::move(xml));
}

Task<> Boot(Creation& creation, DomainDisks disks) {
  const Host& host = creation.host;
  NewDomain domain = DescribeDomain(creation.id, creation.label, creation.parameters, std::move(disks));
  domain.uses_kvm = host.uses_kvm();
  domain.metadata[kDiskKey] = fmt::format("{}", creation.need.disk);
  if (domain.network.empty()) domain.network = host.config().network;
  std::string xml = DomainXml(domain);
  auto start = [&creation, &xml](Hypervisor& hypervisor) {
    return StartUnlessRunning(creation, hypervisor, xml);
  };
  co_await creation.Do(start);
}

Task<std::string> WaitForAddress(Creation& creation) {
  std::string network = creation.label.network.value_or(creation.host.config().network);
  std::function<void()> check = [&creation] {
    if (!creation.host.HasEnded(creation.id.uuid)) return;
    throw LaunchError(
        LaunchError::Kind::kStatus,
        fmt::format("the machine on host {} ended before it had an address", creation.host.name()));
  };
  co_return co_await creation.host.addresses().Wait(std::move(network), MacAddressOf(creation.id),
                                                    std::move(check));
}

Instance DescribeNew(const Creation& creation, const std::string& address) {
  Instance instance;
  instance.external_id = creation.id.ToText();
  instance.name = DomainName(creation.id, creation.parameters.hostname);
  instance.interface_ip = address;
  bool is_ipv6 = address.find(':') != std::string::npos;
  (is_ipv6 ? instance.public_ipv6 : instance.public_ipv4) = address;
  (is_ipv6 ? instance.private_ipv6 : instance.private_ipv4) = address;
  instance.cloud = creation.site.config->name.str();
  instance.host_id = creation.host.name();
  instance.metadata = creation.parameters.metadata;
  instance.quota = ToQuota(creation.need);
  if (creation.host_key) instance.host_keys = {creation.host_key->public_key};
  return instance;
}

Task<> GiveBack(Ledger& ledger, MachineId id) {
  ledger.Remove(id);
  co_return;
}

Task<Instance> Make(Creation& creation, MachineReport& machine) {
  machine.SetState("making volumes");
  DomainDisks disks = co_await MakeDisks(creation);
  machine.SetState("starting");
  co_await Boot(creation, std::move(disks));
  machine.SetState("waiting for an address");
  std::string address = co_await WaitForAddress(creation);
  co_return DescribeNew(creation, address);
}

}  // namespace

Task<Instance> CreateMachine(Site& site, MachineReport& machine, CreateParameters parameters) {
  machine.SetState("choosing a host");
  co_await site.Connected();
  CheckUsable(site);
  co_await site.image_sizes.Known(site.Usable());
  Need need = NeedOf(site, LabelOf(parameters));
  Host* host = co_await Choose(site, parameters, need);
  MachineId id{host->name(), site.environment.random.Uuid()};
  // From here to the end of its deletion the machine takes room on its host.
  site.ledger.Add(id, FindOrEmpty(parameters.metadata, driver::cloud::kNodeKey), need);
  auto give_back = [&](const Failure&) { return GiveBack(site.ledger, id); };
  boost::json::value external_id(id.ToText());
  Task<> storing = machine.SetExternalId(std::move(external_id));
  co_await OnFailure(std::move(storing), give_back);
  Creation creation{site, *host, id, LabelOf(parameters), parameters, need, std::nullopt};
  if (site.config->has_own_host_keys) creation.host_key = MakeSshKey();
  co_return co_await Make(creation, machine);
}

}  // namespace nodepool::drivers::libvirt
