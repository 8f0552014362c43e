#include "drivers/libvirt/machine/create_machine.h"

#include <fmt/format.h>

#include "async/cleanup.h"
#include "base/find_or_empty.h"
#include "driver/cloud/metadata.h"
#include "drivers/libvirt/machine/new_domain.h"
#include "drivers/libvirt/names/volume_name.h"
#include "drivers/libvirt/placement/capacity.h"
#include "drivers/libvirt/seed/iso_image.h"
#include "drivers/libvirt/seed/seed_files.h"
#include "drivers/libvirt/storage/boot_image.h"

namespace nodepool::drivers::libvirt {

using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;

namespace {

// A machine that is being made.
struct Creation {
  Site& site;
  Host& host;
  MachineId id;
  const LibvirtLabel& label;
  const CreateParameters& parameters;
  Need need;

  std::string VolumeName(const char* part) const {
    std::string node = FindOrEmpty(parameters.metadata, driver::cloud::kNodeKey);
    return NameOf(MachineVolume{site.config->name.str(), std::move(node), id.digits(), part});
  }
};

const LibvirtLabel& LabelOf(const CreateParameters& parameters) {
  return dynamic_cast<const LibvirtLabel&>(*parameters.label);
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

Task<std::string> MakeVolume(Creation& creation, NewVolume volume) {
  Task<std::string> call = creation.host.Use().CreateVolume(std::move(volume));
  co_return co_await creation.host.work().Run(creation.id.uuid, std::move(call));
}

Task<std::string> MakeRoot(Creation& creation, const BootImage& image) {
  std::uint64_t capacity =
      creation.label.disk ? std::uint64_t(*creation.label.disk) * kGibibyte : image.capacity;
  if (capacity < image.capacity) {
    throw Error(Verdict::kInvalid,
                fmt::format("label {} has a disk of {} GiB; its image has {:.1f} GiB", creation.label.name,
                            *creation.label.disk, double(image.capacity) / double(kGibibyte)));
  }
  NewVolume volume{creation.VolumeName(kRootPart), "qcow2", capacity, image.file};
  co_return co_await MakeVolume(creation, std::move(volume));
}

Task<std::string> MakeSeedDisk(Creation& creation, SeedFormat format) {
  SeedContent content{creation.id.uuid, creation.parameters.hostname, MacAddressOf(creation.id),
                      creation.label.authorized_keys, creation.label.userdata};
  Seed seed = MakeSeed(format, content);
  std::string bytes = IsoImage(seed.label, seed.files);
  std::string name = creation.VolumeName(PartOf(format));
  NewVolume volume{.name = name, .capacity = bytes.size(), .is_secret = true};
  std::string path = co_await MakeVolume(creation, std::move(volume));
  Task<> call = creation.host.Use().WriteVolume(std::move(name), std::move(bytes));
  co_await creation.host.work().Run(creation.id.uuid, std::move(call));
  co_return path;
}

// Made beforehand, so that the log that libvirt writes there is a volume that can be read.
Task<std::string> MakeConsole(Creation& creation) {
  NewVolume volume{.name = creation.VolumeName(kConsolePart)};
  co_return co_await MakeVolume(creation, std::move(volume));
}

Task<DomainDisks> MakeDisks(Creation& creation) {
  BootImage image = co_await FindBootImage(creation.host.Use(), *creation.site.config, creation.parameters);
  DomainDisks disks;
  disks.image = image.file;
  disks.root_path = co_await MakeRoot(creation, image);
  for (SeedFormat format : creation.label.seeds) {
    std::string path = co_await MakeSeedDisk(creation, format);
    disks.seed_paths.push_back(std::move(path));
  }
  disks.console_path = co_await MakeConsole(creation);
  co_return disks;
}

Task<> Boot(Creation& creation, DomainDisks disks) {
  const Host& host = creation.host;
  NewDomain domain = DescribeDomain(creation.id, creation.label, creation.parameters, std::move(disks));
  domain.uses_kvm = host.uses_kvm();
  domain.metadata[kDiskKey] = fmt::format("{}", creation.need.disk);
  if (domain.network.empty()) domain.network = host.config().network;
  creation.host.Watch(creation.id.uuid);
  Task<> call = creation.host.Use().StartDomain(DomainXml(domain));
  co_await creation.host.work().Run(creation.id.uuid, std::move(call));
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
  Need need = NeedOf(site, LabelOf(parameters));
  Host* host = co_await Choose(site, parameters, need);
  MachineId id{host->name(), site.environment.random.Uuid()};
  // From here to the end of its deletion the machine takes room on its host.
  site.ledger.Add(id, FindOrEmpty(parameters.metadata, driver::cloud::kNodeKey), need);
  auto give_back = [&](const Failure&) { return GiveBack(site.ledger, id); };
  boost::json::value external_id(id.ToText());
  Task<> storing = machine.SetExternalId(std::move(external_id));
  co_await OnFailure(std::move(storing), give_back);
  Creation creation{site, *host, id, LabelOf(parameters), parameters, need};
  co_return co_await Make(creation, machine);
}

}  // namespace nodepool::drivers::libvirt
