#include "drivers/libvirt/machine/boot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>

#include "async/deadline.h"
#include "async/task.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/text.h"
#include "drivers/libvirt/host/host.h"
#include "drivers/libvirt/machine/machines.h"
#include "drivers/libvirt/names.h"
#include "drivers/libvirt/placement/site.h"
#include "drivers/libvirt/seed.h"
#include "drivers/libvirt/storage/boot_image.h"
#include "drivers/libvirt/warm/warm_start.h"

namespace nodepool::drivers::libvirt {

using driver::cloud::CreateParameters;

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

namespace {

constexpr const char* kSinceKey = "making_since";
constexpr Duration kScriptLimit = std::chrono::seconds(60);
constexpr Duration kBootPause = std::chrono::milliseconds(500);
constexpr Duration kSaveLimit = std::chrono::minutes(10);

CreateParameters ParametersOf(const Creation& machine) {
  CreateParameters parameters = machine.parameters;
  parameters.hostname = kWarmStart;
  std::int64_t now = static_cast<std::int64_t>(ToSeconds(machine.site.environment.loop.Now()));
  parameters.metadata = {{driver::cloud::kProviderKey, machine.site.config->name.str()},
                         {driver::cloud::kNodeKey, kWarmStart},
                         {kSinceKey, std::to_string(now)}};
  return parameters;
}

Task<> AwaitBoot(Creation& creation) {
  Loop& loop = creation.site.environment.loop;
  std::string script = HasBootedScript(creation.label.connection.connection_port);
  while (true) {
    GuestResult result =
        co_await RunInGuest(loop, creation.host.Use(), creation.id.uuid, script, kMostOfMaking);
    if (result.status == 0) co_return;
    co_await loop.SleepFor(kBootPause);
  }
}

Task<> Prepare(Creation& creation) {
  GuestResult result = co_await RunInGuest(creation.site.environment.loop, creation.host.Use(),
                                           creation.id.uuid, PrepareScript(), kScriptLimit);
  if (result.status == 0) co_return;
  throw Error(Verdict::kFail, "the machine cannot be prepared: " + Excerpt(result.output, 300));
}

Task<> Make(Creation& creation) {
  DomainDisks disks = co_await MakeDisks(creation);
  co_await Boot(creation, std::move(disks));
  SteadyTime deadline = creation.site.environment.loop.SteadyNow() + kMostOfMaking;
  co_await WithDeadline(creation.site.environment.loop, deadline, "the boot of the machine to be saved",
                        AwaitBoot(creation));
  co_await Prepare(creation);
  std::string memory = creation.VolumeName(kMemoryPart);
  NewVolume volume{.name = memory, .is_secret = true};
  co_await MakeVolume(creation, std::move(volume));
  co_await creation.host.Use().SaveDomain(creation.id.uuid, memory, kSaveLimit);
  creation.host.Unwatch(creation.id.uuid);
}

}  // namespace

Task<> MakeTemplate(Creation& machine, const MachineId& id) {
  Loop& loop = machine.site.environment.loop;
  SteadyTime start = loop.SteadyNow();
  CreateParameters parameters = ParametersOf(machine);
  Creation creation{machine.site, machine.host, id, machine.label, parameters, machine.need, std::nullopt};
  auto remove = [&](const Failure&) {
    return RemoveMachine(machine.site.hosts, machine.site.config->name.str(), id);
  };
  co_await RemoveMachine(machine.site.hosts, machine.site.config->name.str(), id);
  co_await OnFailure(Make(creation), remove);
  machine.site.logger.Info("The memory of a booted machine of label {} is saved on host {} after {:.1f} s",
                           machine.label.name, machine.host.name(),
                           std::chrono::duration<double>(loop.SteadyNow() - start).count());
}

std::int64_t MakingSince(const DomainInfo& domain) {
  const std::string text = FindOrEmpty(domain.metadata, kSinceKey);
  std::int64_t seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return FindOrEmpty(domain.metadata, driver::cloud::kNodeKey) == kWarmStart ? seconds : 0;
}

namespace {

// To be raised when templates are made otherwise.
constexpr int kTemplateVersion = 2;

// The description of a machine without what makes it differ from others.
std::string SharedDescription(const Creation& creation, const BootImage& image) {
  NewDomain domain = DescribeOnHost(creation, DomainDisks{.image = image.file});
  domain.name.clear();
  domain.uuid.clear();
  domain.metadata.clear();
  domain.mac.clear();
  return DomainXml(domain);
}

// The form of RFC 9562's version 8, for values that an application makes up.
std::string AsUuid(const std::string& hex) {
  return fmt::format("{}-{}-8{}-8{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 3),
                     hex.substr(15, 3), hex.substr(18, 12));
}

}  // namespace

MachineId TemplateFor(const Creation& creation, const BootImage& image) {
  std::vector<int> seeds;
  for (SeedFormat format : creation.label.seeds) seeds.push_back(static_cast<int>(format));
  std::string shape = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", kTemplateVersion,
                                  creation.site.config->name.str(), SharedDescription(creation, image),
                                  image.modified, creation.label.disk.value_or(0), fmt::join(seeds, ","),
                                  fmt::join(KeysFor(creation), "\n"), creation.label.userdata.value_or(""));
  return {creation.host.name(), AsUuid(Sha256Hex(shape))};
}

bool IsOfTemplate(const MachineVolume& volume) { return volume.node == kWarmStart; }

namespace {

constexpr std::chrono::hours kUnused{24};

using Volumes = std::vector<VolumeInfo>;

// The volumes of each template, by what their names have of its UUID.
std::map<std::string, Volumes> TemplatesIn(const Volumes& volumes) {
  std::map<std::string, Volumes> templates;
  for (const VolumeInfo& volume : volumes) {
    std::optional<MachineVolume> ours = ParseMachineVolume(volume.name);
    if (ours && IsOfTemplate(*ours)) templates[ours->provider + "/" + ours->machine].push_back(volume);
  }
  return templates;
}

bool HasUsers(const Volumes& of_template, const Volumes& all) {
  return std::ranges::any_of(all, [&](const VolumeInfo& volume) {
    return std::ranges::find(of_template, volume.backing_path, &VolumeInfo::path) != of_template.end();
  });
}

bool IsUnused(const Volumes& of_template, WallTime now) {
  auto newest = std::ranges::max_element(of_template, {}, &VolumeInfo::modified);
  return now - FromSeconds(static_cast<double>(newest->modified)) > kUnused;
}

Task<> Delete(Host& host, Volumes of_template) {
  for (const VolumeInfo& volume : of_template) co_await host.Use().DeleteVolume(volume.name);
}

}  // namespace

Task<> DeleteTemplatesOn(Host& host, std::string image) {
  Volumes volumes = co_await host.Use().Volumes();
  auto found = std::ranges::find(volumes, image, &VolumeInfo::name);
  if (found == volumes.end()) co_return;
  for (auto& [id, of_template] : TemplatesIn(volumes)) {
    bool is_on_image =
        std::ranges::find(of_template, found->path, &VolumeInfo::backing_path) != of_template.end();
    if (is_on_image && !HasUsers(of_template, volumes)) co_await Delete(host, std::move(of_template));
  }
}

Task<> DeleteUnusedTemplates(WallTime now, const std::string& provider, Host& host, const Volumes& volumes,
                             const std::vector<DomainInfo>& domains) {
  for (const DomainInfo& domain : domains) {
    std::int64_t since = MakingSince(domain);
    bool is_left = since != 0 && now - FromSeconds(static_cast<double>(since)) > kMostOfMaking;
    if (is_left) co_await host.Use().DestroyDomain(domain.uuid);
  }
  for (auto& [id, of_template] : TemplatesIn(volumes)) {
    bool is_ours = id.starts_with(provider + "/");
    if (is_ours && IsUnused(of_template, now) && !HasUsers(of_template, volumes)) {
      co_await Delete(host, std::move(of_template));
    }
  }
}

}  // namespace nodepool::drivers::libvirt
