#include "drivers/libvirt/machine/boot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "drivers/libvirt/addresses.h"
#include "drivers/libvirt/placement/capacity.h"
#include "drivers/libvirt/seed.h"
#include "drivers/libvirt/storage/boot_image.h"

namespace nodepool::drivers::libvirt {

std::string DomainName(const MachineId& id, const std::string& hostname) {
  return hostname + "-" + id.digits();
}

Platform PlatformFor(const LibvirtLabel& label, const std::string& architecture) {
  Platform usual = architecture == "aarch64" ? Platform{architecture, "virt", Firmware::kUefi}
                                             : Platform{architecture, "q35", Firmware::kBios};
  Platform platform{architecture, label.machine.value_or(usual.machine),
                    label.firmware.value_or(usual.firmware)};
  if (label.is_started_warm && platform.firmware != Firmware::kBios) {
    throw Error(Verdict::kInvalid,
                fmt::format("label {} has warm-start, which needs firmware: bios; machines of {} "
                            "have none",
                            label.name, architecture));
  }
  return platform;
}

NewDomain DescribeDomain(const MachineId& id, const LibvirtLabel& label,
                         const driver::cloud::CreateParameters& parameters, const MachineNetwork& network,
                         DomainDisks disks) {
  NewDomain domain;
  domain.name = DomainName(id, parameters.hostname);
  domain.uuid = id.uuid;
  domain.metadata = parameters.metadata;
  domain.metadata["request_id"] = parameters.request_id.str();
  domain.metadata["label"] = label.name.str();
  domain.metadata["image"] = label.diskimage ? label.diskimage->str() : label.cloud_image.value_or("");
  domain.vcpus = label.vcpus;
  domain.memory = label.memory;
  domain.cpu = label.cpu;
  domain.variables_path = std::move(disks.variables_path);
  domain.kernel = label.kernel;
  domain.root_path = std::move(disks.root_path);
  domain.image = std::move(disks.image);
  domain.disk_bus = label.disk_bus;
  domain.seed_paths = std::move(disks.seed_paths);
  domain.console_path = std::move(disks.console_path);
  domain.mac = MacAddressOf(id);
  domain.network = network;
  for (const std::string& more : label.more_networks) {
    domain.more_interfaces.push_back({MacAddressOf(id, domain.more_interfaces.size() + 1), more});
  }
  domain.has_generation = label.is_started_warm;
  domain.security_filter = label.security_filter;
  return domain;
}

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
  domain.platform = PlatformFor(creation.label, creation.host.size().architecture);
  domain.platform = PlatformFor(creation.label, creation.host.size().architecture);
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

namespace {

// Its name has the machine's UUID: what is there is of an earlier try, whose answer was lost.
Task<std::string> MakeAnew(Hypervisor& host, NewVolume volume) {
  Outcome<std::string> made = co_await Attempt(host.CreateVolume(volume));
  if (made) co_return std::move(*made);
  if (!FailedWith(made, Verdict::kConflict)) made.error().Rethrow();
  co_await host.DeleteVolume(volume.name);
  std::string path = co_await host.CreateVolume(std::move(volume));
  co_return path;
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
  SeedContent content{creation.id.uuid,  creation.parameters.hostname, MacAddressOf(creation.id),
                      KeysFor(creation), creation.label.userdata,      creation.host_key};
  Seed seed = MakeSeed(format, content);
  std::string bytes = IsoImage(seed.label, seed.files);
  std::string name = creation.VolumeName(PartOf(format));
  NewVolume volume{.name = name, .capacity = bytes.size(), .is_secret = true};
  std::string path = co_await MakeVolume(creation, std::move(volume));
  auto write = [&name, &bytes](Hypervisor& host) { return host.WriteVolume(name, bytes); };
  co_await creation.Do(write);
  co_return path;
}

// The firmware's variables lie beside the disk under a volume's name, so they are deleted like one.
std::string VariablesBeside(const Creation& creation, const std::string& root_path) {
  Platform platform = PlatformFor(creation.label, creation.host.size().architecture);
  if (platform.firmware == Firmware::kBios) return "";
  return root_path.substr(0, root_path.rfind('/') + 1) + creation.VolumeName(kVariablesPart);
}

}  // namespace

Task<std::string> MakeVolume(Creation& creation, NewVolume volume) {
  auto make = [&volume](Hypervisor& host) { return MakeAnew(host, volume); };
  co_return co_await creation.Do(make);
}

std::vector<std::string> KeysFor(const Creation& creation) {
  std::vector<std::string> keys = creation.label.authorized_keys;
  const std::optional<std::string>& own = creation.site.key.PublicKey();
  if (own && std::ranges::find(keys, *own) == keys.end()) keys.push_back(*own);
  return keys;
}

// Made beforehand, so that the log that libvirt writes there is a volume that can be read.
Task<std::string> MakeConsole(Creation& creation) {
  NewVolume volume{.name = creation.VolumeName(kConsolePart)};
  co_return co_await MakeVolume(creation, std::move(volume));
}

Task<DomainDisks> MakeDisks(Creation& creation) {
  auto find = [&creation](Hypervisor& host) {
    return FindBootImage(host, *creation.site.config, creation.parameters);
  };
  BootImage image = co_await creation.host.AcrossLosses(find);
  DomainDisks disks;
  disks.image = image.file;
  disks.root_path = co_await MakeRoot(creation, image);
  disks.variables_path = VariablesBeside(creation, disks.root_path);
  for (SeedFormat format : creation.label.seeds) {
    std::string path = co_await MakeSeedDisk(creation, format);
    disks.seed_paths.push_back(std::move(path));
  }
  disks.console_path = co_await MakeConsole(creation);
  co_return disks;
}

}  // namespace nodepool::drivers::libvirt
