#include "drivers/libvirt/machine/machines.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <set>
#include <string>

#include "async/deadline.h"
#include "async/task.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "drivers/libvirt/host/host.h"
#include "drivers/libvirt/machine/boot.h"
#include "drivers/libvirt/names.h"
#include "drivers/libvirt/placement/site.h"
#include "drivers/libvirt/storage/images.h"
#include "drivers/libvirt/warm/warm_start.h"

namespace nodepool::drivers::libvirt {

using driver::cloud::Instance;
using driver::cloud::Resource;

namespace {

struct LeaseRoom {
  std::uint64_t leases = 0;
  std::uint64_t addresses = 0;
};

Task<LeaseRoom> ReadLeaseRoom(Host& host, std::string network) {
  std::vector<KnownAddress> leases = co_await host.Use().Leases(network);
  LeaseRoom room;
  room.leases = std::uint64_t(std::ranges::count(leases, false, &KnownAddress::is_ipv6));
  room.addresses = co_await host.Use().LeaseRange(network);
  co_return room;
}

// What is to be said of a machine without an address where the network has none left: "network N has 253
// leases of 253 addresses ...; ". Empty: it has some, or cannot be asked.
Task<std::string> ExplainLeases(Host& host, MachineNetwork network) {
  if (network.kind != MachineNetwork::Kind::kNamed) co_return "";
  Outcome<LeaseRoom> room = co_await Attempt(ReadLeaseRoom(host, network.name));
  if (!room || room->addresses == 0 || room->leases < room->addresses) co_return "";
  co_return fmt::format(
      "network {} has {} leases of {} addresses, and those of deleted machines stay until they expire: "
      "enlarge its range, or shorten its leases; ",
      network.name, room->leases, room->addresses);
}

}  // namespace

using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;

namespace {

const LibvirtLabel& LabelOf(const CreateParameters& parameters) {
  return driver::cloud::As<LibvirtLabel>(*parameters.label);
}

// Without a host that can be used the launch waits, like without room.
void CheckUsable(const Hosts& hosts) {
  if (!hosts.Usable().empty()) return;
  throw Error(Verdict::kQuota,
              fmt::format("no host can be used; host {}: {}", hosts[0].name(), hosts[0].fault()->message()));
}

// Time enough to say what is wrong before the whole attempt is given up.
SteadyTime AddressDeadline(const Creation& creation, SteadyTime begun) {
  Duration whole = creation.site.config->launch_timeout;
  return begun + whole - std::min<Duration>(whole / 10, std::chrono::seconds(10));
}

void CheckRunning(const Creation& creation) {
  const Host& host = creation.host;
  if (host.HasEnded(creation.id.uuid)) {
    throw LaunchError(LaunchError::Kind::kStatus,
                      fmt::format("the machine on host {} ended before it had an address", host.name()));
  }
  const std::string* reason = host.paused().ReasonOf(creation.id.uuid);
  if (reason == nullptr) return;
  throw LaunchError(
      LaunchError::Kind::kStatus,
      fmt::format("the machine on host {} was paused, since its disk could not be written: I/O error {}",
                  host.name(), *reason));
}

Task<> SearchAddress(Creation& creation, std::string& address) {
  std::function<void()> check = [&creation] { CheckRunning(creation); };
  AddressSearch search{creation.id.uuid, MacAddressOf(creation.id), creation.network()};
  address = co_await creation.host.addresses().Wait(std::move(search), std::move(check));
}

Task<std::string> ConsoleEnd(Creation& creation) {
  Outcome<std::string> console =
      co_await Attempt(ReadConsole(creation.site.hosts, creation.site.config->name.str(), creation.id));
  if (!console) co_return fmt::format("its console cannot be read: {}", console.error().message());
  co_return fmt::format("the end of its console: {}", LastLines(*console));
}

[[noreturn]] void FailWithoutAddress(const Creation& creation, const std::string& console) {
  bool is_bridge = creation.network().kind == MachineNetwork::Kind::kBridge;
  throw LaunchError(
      LaunchError::Kind::kNetwork,
      fmt::format(
          "the machine on host {} has no address: {} {} knows none of {}; {}", creation.host.name(),
          is_bridge ? "neither its guest agent nor the ARP table of bridge" : "the DHCP server of network",
          creation.network().name, MacAddressOf(creation.id), console));
}

Task<std::string> WaitForAddress(Creation& creation, SteadyTime begun) {
  std::string address;
  bool is_found = co_await EndsBy(creation.site.environment.loop, AddressDeadline(creation, begun),
                                  "the address of a machine", SearchAddress(creation, address));
  if (is_found) co_return address;
  std::string hint = co_await ExplainLeases(creation.host, creation.network());
  std::string console = co_await ConsoleEnd(creation);
  FailWithoutAddress(creation, hint + console);
}

void SetAddress(const std::string& address, Instance& instance) {
  instance.interface_ip = address;
  bool is_ipv6 = address.find(':') != std::string::npos;
  (is_ipv6 ? instance.public_ipv6 : instance.public_ipv4) = address;
  (is_ipv6 ? instance.private_ipv6 : instance.private_ipv4) = address;
}

Instance DescribeNew(const Creation& creation) {
  Instance instance;
  instance.external_id = creation.id.ToText();
  instance.name = DomainName(creation.id, creation.parameters.hostname);
  instance.cloud = creation.site.config->name.str();
  instance.host_id = creation.host.name();
  // The framework keeps the nodes of a request in one zone.
  if (SameHostFor(*creation.site.config, creation.label) != SameHost::kNo) instance.az = creation.host.name();
  instance.metadata = creation.parameters.metadata;
  instance.quota = ToQuota(creation.need);
  if (!creation.host.uses_kvm()) instance.boot_timeout = creation.site.config->slow_boot_timeout;
  if (creation.host_key) instance.host_keys = {creation.host_key->public_key};
  return instance;
}

// MAC address and names of volumes have the first digits of the UUID, so these are others than those of all
// machines that are known, also of other Nodepools.
constexpr std::size_t kDigitsOfMac = 6;

MachineId NewMachineId(Random& random, const Ledger& ledger, const Host& host) {
  while (true) {
    MachineId id{host.name(), random.Uuid()};
    std::string digits = id.uuid.substr(0, kDigitsOfMac);
    auto is_like = [&digits](std::string_view uuid) { return uuid.starts_with(digits); };
    bool is_listed = std::ranges::any_of(host.listed(), is_like, &DomainInfo::uuid);
    bool is_made =
        std::ranges::any_of(ledger.entries(), is_like, [](const auto& entry) { return entry.first; });
    if (!is_listed && !is_made) return id;
  }
}

Task<> GiveBack(Site& site, MachineId id) {
  site.Forget(id);
  co_return;
}

// Cloud images are where their operator has put them.
Task<> GetImage(Creation& creation, MachineReport& machine) {
  const std::optional<std::string>& image = creation.parameters.image_external_id;
  if (!creation.label.diskimage || !image) co_return;
  machine.SetState("waiting for the image on " + creation.host.name());
  co_await EnsureUpload(creation.site, creation.host, *image);
}

// Returns its address; nullopt: it has to be booted.
Task<std::optional<std::string>> Restore(Creation& creation, MachineReport& machine) {
  if (!creation.label.is_started_warm) co_return std::nullopt;
  machine.SetState("restoring");
  co_return co_await StartWarm(creation);
}

// Returns the port of the host that is forwarded to it; none: it has an address of its own.
Task<std::optional<int>> BootAnew(Creation& creation, MachineReport& machine) {
  machine.SetState("making volumes");
  DomainDisks disks = co_await MakeDisks(creation);
  machine.SetState("starting");
  co_return co_await Boot(creation, std::move(disks));
}

Task<Instance> Make(Creation& creation, MachineReport& machine) {
  SteadyTime begun = creation.site.environment.loop.SteadyNow();
  co_await GetImage(creation, machine);
  std::optional<std::string> known = co_await Restore(creation, machine);
  if (known) {
    Instance instance = DescribeNew(creation);
    SetAddress(*known, instance);
    co_return instance;
  }
  std::optional<int> port = co_await BootAnew(creation, machine);
  Instance instance = DescribeNew(creation);
  if (port) {
    SetAddress(creation.host.config().address, instance);
    instance.connection.connection_port = boost::json::value(*port);
    co_return instance;
  }
  machine.SetState("waiting for an address");
  std::string address = co_await WaitForAddress(creation, begun);
  SetAddress(address, instance);
  co_return instance;
}

}  // namespace

Task<Instance> CreateMachine(Site& site, MachineReport& machine, CreateParameters parameters) {
  machine.SetState("choosing a host");
  co_await site.hosts.Connected();
  CheckUsable(site.hosts);
  co_await site.image_sizes.Known(site.hosts.Usable());
  Need need = NeedOf(*site.config, site.image_sizes, LabelOf(parameters));
  Host* host = co_await ChooseHostFor(site, parameters, need);
  MachineId id = NewMachineId(site.environment.random, site.ledger, *host);
  // From here to the end of its deletion the machine takes room on its host.
  site.ledger.Add(id, FindOrEmpty(parameters.metadata, driver::cloud::kNodeKey), parameters.request_id, need);
  auto give_back = [&](const Failure&) { return GiveBack(site, id); };
  boost::json::value external_id(id.ToText());
  Task<> storing = machine.SetExternalId(std::move(external_id));
  co_await OnFailure(std::move(storing), give_back);
  Creation creation{site, *host, id, LabelOf(parameters), parameters, need, std::nullopt};
  if (site.config->has_own_host_keys) creation.host_key = MakeSshKey();
  co_return co_await Make(creation, machine);
}

namespace {

constexpr const char* kInstance = "instance";
constexpr const char* kImage = "image";
constexpr const char* kVolume = "volume";

Instance DescribeListed(const std::string& provider, const Host& host, const DomainInfo& domain) {
  Instance instance;
  instance.external_id = MachineId{host.name(), domain.uuid}.ToText();
  instance.name = domain.name;
  instance.cloud = provider;
  instance.host_id = host.name();
  instance.metadata = domain.metadata;
  instance.quota = ToQuota(NeedOf(domain));
  return instance;
}

// What names of volumes have of the UUIDs of machines that run or are being made.
std::set<std::string> LivingMachines(const Ledger& ledger, const Host& host,
                                     const std::vector<DomainInfo>& domains) {
  std::set<std::string> living;
  for (const DomainInfo& domain : domains) living.insert(MachineId{host.name(), domain.uuid}.digits());
  for (const auto& [uuid, entry] : ledger.entries()) {
    if (entry.host == host.name()) living.insert(MachineId{host.name(), uuid}.digits());
  }
  return living;
}

std::optional<Resource> AsResource(const Host& host, const VolumeInfo& volume,
                                   const std::set<std::string>& living) {
  std::string id = host.name() + "/" + volume.name;
  if (auto image = ParseImageVolume(volume.name))
    return Resource{kImage, std::move(id), MetadataOf(*image), true};
  if (auto image = ParseMark(volume.name)) return Resource{kVolume, std::move(id), MetadataOf(*image), true};
  auto ours = ParseMachineVolume(volume.name);
  if (!ours || IsOfTemplate(*ours) || living.contains(ours->machine)) return std::nullopt;
  return Resource{kVolume, std::move(id), MetadataOf(*ours), true};
}

Task<> AppendMarked(Site& site, Host& host, std::vector<Resource>& resources) {
  std::vector<VolumeInfo> volumes = co_await host.Use().Volumes();
  // Read after the volumes: a machine that is made meanwhile has its domain, or its entry in the ledger,
  // before.
  std::vector<DomainInfo> domains = co_await host.Domains();
  std::set<std::string> living = LivingMachines(site.ledger, host, domains);
  for (const DomainInfo& domain : domains) {
    if (domain.metadata.empty() || MakingSince(domain) != 0) continue;
    resources.push_back({kInstance, MachineId{host.name(), domain.uuid}.ToText(), domain.metadata});
  }
  for (const VolumeInfo& volume : volumes) {
    if (std::optional<Resource> resource = AsResource(host, volume, living)) {
      resources.push_back(std::move(*resource));
    }
  }
  co_await DeleteUnusedTemplates(site.environment.loop.Now(), site.config->name.str(), host, volumes,
                                 domains);
  co_await site.old_fetches.Delete(host, volumes, site.environment.loop.SteadyNow());
  co_await host.ResumePaused();
}

}  // namespace

Task<std::vector<Instance>> ListMachines(Site& site) {
  co_await site.hosts.Connected();
  std::vector<Instance> instances;
  for (const auto& host : site.hosts) {
    std::vector<DomainInfo> domains = co_await host->Domains();
    for (const DomainInfo& domain : domains)
      instances.push_back(DescribeListed(site.config->name.str(), *host, domain));
  }
  co_return instances;
}

Task<std::vector<Resource>> ListMarked(Site& site) {
  co_await site.hosts.Connected();
  std::vector<Resource> resources;
  for (Host* host : site.hosts.Usable()) {
    Outcome<> listed = co_await Attempt(AppendMarked(site, *host, resources));
    if (!listed) {
      site.logger.Warning("Host {} could not be searched for leaks; the next sweep tries again: {}",
                          host->name(), listed.error().message());
    }
  }
  co_return resources;
}

Task<> DeleteMarked(Site& site, Resource resource) {
  co_await site.hosts.Connected();
  if (resource.type == kInstance) {
    if (std::optional<MachineId> id = ParseMachineId(resource.id))
      co_await DeleteMachine(site, std::move(*id));
    co_return;
  }
  std::size_t slash = resource.id.find('/');
  if (slash == std::string::npos) co_return;
  Host& host = site.hosts.At(resource.id.substr(0, slash));
  std::string volume = resource.id.substr(slash + 1);
  if (resource.type == kImage) {
    co_await DeleteImageOn(host, std::move(volume));
  } else {
    co_await host.Use().DeleteVolume(std::move(volume));
  }
}

Task<std::vector<boost::json::value>> MissingMachines(Hosts& hosts, std::vector<boost::json::value> ids) {
  co_await hosts.Connected();
  std::set<std::string> running;
  std::set<std::string> asked;
  for (Host* host : hosts.Usable()) {
    // The sweep has read the list a moment ago.
    std::vector<DomainInfo> domains = co_await host->RecentDomains();
    if (host->fault()) continue;
    asked.insert(host->name());
    for (const DomainInfo& domain : domains) running.insert(MachineId{host->name(), domain.uuid}.ToText());
  }
  std::erase_if(ids, [&](const boost::json::value& id) {
    std::optional<MachineId> machine =
        id.is_string() ? ParseMachineId(std::string(id.as_string())) : std::nullopt;
    return !machine || !asked.contains(machine->host) || running.contains(machine->ToText());
  });
  co_return ids;
}

Task<std::vector<std::string>> FindVolumes(const Hosts& hosts, std::string provider, MachineId id) {
  std::vector<VolumeInfo> volumes = co_await hosts.At(id.host).Use().Volumes();
  std::vector<std::string> names;
  for (const VolumeInfo& volume : volumes) {
    std::optional<MachineVolume> ours = ParseMachineVolume(volume.name);
    if (ours && ours->provider == provider && ours->machine == id.digits()) {
      names.push_back(volume.name);
    }
  }
  co_return names;
}

Task<> RemoveMachine(const Hosts& hosts, std::string provider, MachineId id) {
  Host& host = hosts.At(id.host);
  co_await host.work().Settled(id.uuid);
  host.ExpectEnd(id.uuid);
  // The disks go only when the machine is gone.
  co_await host.Use().DestroyDomain(id.uuid);
  std::vector<std::string> names = co_await FindVolumes(hosts, std::move(provider), id);
  for (const std::string& name : names) co_await host.Use().DeleteVolume(name);
  host.Unwatch(id.uuid);
}

Task<> DeleteMachine(Site& site, MachineId id) {
  co_await site.hosts.Connected();
  co_await RemoveMachine(site.hosts, site.config->name.str(), id);
  site.Forget(id);
  site.environment.framework.CapacityChanged();
}

namespace {

constexpr std::uint64_t kMost = 256 * 1024;
constexpr std::size_t kMostInMessage = 300;

}  // namespace

std::string ConsoleText(const std::string& bytes) {
  static const re2::RE2 escapes(R"(\x1b(\[[0-9;?=]*[A-Za-z]|[()][A-Za-z0-9]|[=>78cM]))", re2::RE2::Latin1);
  std::string text = bytes;
  re2::RE2::GlobalReplace(&text, escapes, "");
  std::erase(text, '\r');
  return Visible(text, "\n\t");
}

Task<std::string> ReadConsole(Hosts& hosts, std::string provider, MachineId id) {
  co_await hosts.Connected();
  Host& host = hosts.At(id.host);
  std::vector<std::string> names = co_await FindVolumes(hosts, std::move(provider), id);
  for (const std::string& name : names) {
    std::optional<MachineVolume> volume = ParseMachineVolume(name);
    if (!volume || volume->part != kConsolePart) continue;
    std::string bytes = co_await host.Use().ReadVolumeEnd(name, kMost);
    host.NoteFailedBoot(bytes);
    if (!bytes.empty()) co_return ConsoleText(bytes);
    co_return fmt::format(
        "the console is empty: no serial console in the image, or it never started ({} KVM)",
        host.uses_kvm() ? "with" : "without");
  }
  throw Error(Verdict::kNotFound, fmt::format("machine {} has no console", id.ToText()));
}

std::string LastLines(const std::string& text) {
  std::string end = text.substr(text.size() - std::min(text.size(), kMostInMessage));
  return Excerpt(end, kMostInMessage);
}

}  // namespace nodepool::drivers::libvirt
