#include "drivers/libvirt/warm/warm_start.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/deadline.h"
#include "base/text.h"
#include "drivers/libvirt/addresses.h"
#include "drivers/libvirt/guest/agent.h"
#include "drivers/libvirt/guest/scripts.h"
#include "drivers/libvirt/machine/boot.h"
#include "drivers/libvirt/machine/machines.h"
#include "drivers/libvirt/warm/templates.h"
#include "drivers/libvirt/xml/saved_memory.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr Duration kPauseAfterFault = std::chrono::minutes(10);
constexpr Duration kIdentityLimit = std::chrono::seconds(120);
constexpr Duration kAddressPause = std::chrono::milliseconds(30);
constexpr Duration kLogLimit = std::chrono::seconds(10);
constexpr int kRandomNumbers = 8;

struct Template {
  MachineId id;
  std::string memory;  // the name of its volume
  DiskFile root;
  std::uint64_t capacity = 0;  // of root
  std::string memory_start;    // of the volume's content
};

std::string TemplateVolume(const Creation& creation, const MachineId& id, const char* part) {
  return NameOf(MachineVolume{creation.site.config->name.str(), kWarmStart, id.digits(), part});
}

// nullopt: the host has no complete one.
Task<std::optional<Template>> FindTemplate(Creation& creation, const MachineId& id) {
  Hypervisor& host = creation.host.Use();
  Template found{.id = id, .memory = TemplateVolume(creation, id, kMemoryPart)};
  Task<std::string> read = host.ReadVolumeStart(found.memory, kMostOfSavedMemory);
  Outcome<std::string> start = co_await Attempt(std::move(read));
  if (FailedWith(start, Verdict::kNotFound)) co_return std::nullopt;
  if (!start) start.error().Rethrow();
  if (!DescriptionIn(*start)) co_return std::nullopt;
  VolumeInfo root = co_await host.Volume(TemplateVolume(creation, id, kRootPart));
  found.root = {root.path, "qcow2"};
  found.capacity = root.capacity;
  found.memory_start = std::move(*start);
  co_return found;
}

Task<> CheckNobodyMakes(Creation& creation, const MachineId& id) {
  std::vector<DomainInfo> domains = co_await creation.host.Domains();
  auto running = std::ranges::find(domains, id.uuid, &DomainInfo::uuid);
  if (running == domains.end()) co_return;
  WallTime since = FromSeconds(static_cast<double>(MakingSince(*running)));
  if (creation.site.environment.loop.Now() - since < kMostOfMaking) {
    throw Error(Verdict::kRetry, "another process makes the saved memory");
  }
}

Task<Template> FindOrMake(Creation& creation, const MachineId& id) {
  std::optional<Template> found = co_await FindTemplate(creation, id);
  if (found) co_return std::move(*found);
  co_await CheckNobodyMakes(creation, id);
  co_await MakeTemplate(creation, id);
  found = co_await FindTemplate(creation, id);
  if (!found) throw Error(Verdict::kFail, "the file of saved memory is not complete");
  co_return std::move(*found);
}

// An earlier try may have started the machine although its answer was lost.
Task<> RestoreUnlessRunning(Creation& creation, Hypervisor& host, const Template& from, std::string start) {
  if (creation.host.IsListed(creation.id.uuid)) co_return;
  co_await host.WriteVolume(from.memory, std::move(start));
  creation.host.Watch(creation.id.uuid);
  co_await host.RestoreDomain(from.memory);
}

Task<> Restore(Creation& creation, const Template& from) {
  DomainDisks disks;
  disks.image = from.root;
  NewVolume root{creation.VolumeName(kRootPart), "qcow2", from.capacity, from.root};
  disks.root_path = co_await MakeVolume(creation, std::move(root));
  disks.console_path = co_await MakeConsole(creation);
  std::optional<std::string> saved = DescriptionIn(from.memory_start);
  if (!saved) throw Error(Verdict::kFail, "the memory to start from is not complete");
  std::string description = CloneXml(*saved, DescribeOnHost(creation, std::move(disks)));
  std::string start = WithDescription(from.memory_start, description);
  auto restore = [&](Hypervisor& host) { return RestoreUnlessRunning(creation, host, from, start); };
  co_await creation.Do(restore);
}

std::string RandomBytes(Random& random) {
  std::string bytes;
  for (int i = 0; i < kRandomNumbers; ++i) {
    std::uint64_t number = random.Next();
    bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  return bytes;
}

Identity IdentityOf(Creation& creation, const SshKey& host_key) {
  std::string machine_id = creation.id.uuid;
  std::erase(machine_id, '-');
  return {.hostname = creation.parameters.hostname,
          .machine_id = std::move(machine_id),
          .mac = MacAddressOf(creation.id),
          .host_key = host_key.private_key,
          .public_host_key = host_key.public_key,
          .random = RandomBytes(creation.site.environment.random),
          .ssh_port = creation.label.connection.connection_port};
}

// The agent is there, so it is asked in place of the DHCP server, and often.
Task<std::string> AwaitAddress(Creation& creation) {
  const std::string mac = MacAddressOf(creation.id);
  auto ask = [&](Hypervisor& host) { return host.Addresses(creation.id.uuid, AddressSource::kAgent); };
  while (true) {
    if (creation.host.HasEnded(creation.id.uuid)) throw Error(Verdict::kFail, "the restored machine ended");
    Outcome<std::vector<KnownAddress>> known = co_await Attempt(creation.host.AcrossLosses(ask));
    std::string address = known ? AddressIn(*known, mac) : "";
    if (!address.empty()) {
      creation.host.addresses().Claim(creation.network(), address, creation.id.uuid);
      co_return address;
    }
    co_await creation.site.environment.loop.SleepFor(kAddressPause);
  }
}

Task<std::string> TakeIdentity(Creation& creation, Identity identity) {
  Loop& loop = creation.site.environment.loop;
  std::string script = IdentityScript(identity, loop.Now());
  auto write = [&](Hypervisor& host) {
    return WriteInGuest(loop, host, creation.id.uuid, kIdentityPipe, script, kIdentityLimit);
  };
  co_await creation.host.AcrossLosses(write);
  co_return co_await AwaitAddress(creation);
}

Task<std::string> IdentityLog(Creation& creation) {
  Outcome<GuestResult> log =
      co_await Attempt(RunInGuest(creation.site.environment.loop, creation.host.Use(), creation.id.uuid,
                                  std::string("tail -c 300 ") + kIdentityLog, kLogLimit));
  co_return log ? log->output : "its log cannot be read: " + log.error().message();
}

// Returns the machine's address.
Task<std::string> GiveIdentity(Creation& creation, const SshKey& host_key) {
  Loop& loop = creation.site.environment.loop;
  SteadyTime deadline = loop.SteadyNow() + kIdentityLimit;
  Task<std::string> taking = TakeIdentity(creation, IdentityOf(creation, host_key));
  Outcome<std::string> address = co_await Attempt(
      WithDeadline(loop, deadline, "giving the restored machine its identity", std::move(taking)));
  if (address) co_return std::move(*address);
  std::string log = co_await IdentityLog(creation);
  throw Error(Verdict::kFail, address.error().message() + ": " + Excerpt(log, 300));
}

// nullopt: the last fault was a moment ago.
Task<std::optional<std::string>> Start(Creation& creation, const MachineId& id, WarmTemplate& state,
                                       const SshKey& host_key) {
  {
    Gate::Pass pass = co_await state.gate.Enter();
    if (creation.site.environment.loop.SteadyNow() < state.retry_at) co_return std::nullopt;
    Template from = co_await FindOrMake(creation, id);
    co_await Restore(creation, from);
  }
  co_return co_await GiveIdentity(creation, host_key);
}

}  // namespace

Task<std::optional<std::string>> StartWarm(Creation& creation) {
  Site& site = creation.site;
  auto find = [&](Hypervisor& host) { return FindBootImage(host, *site.config, creation.parameters); };
  BootImage image = co_await creation.host.AcrossLosses(find);
  MachineId id = TemplateFor(creation, image);
  WarmTemplate& state = site.warm_templates[id.ToText()];
  SshKey host_key = MakeSshKey();
  Outcome<std::optional<std::string>> address = co_await Attempt(Start(creation, id, state, host_key));
  if (address) {
    if (*address) creation.host_key = std::move(host_key);
    co_return std::move(*address);
  }
  state.retry_at = site.environment.loop.SteadyNow() + kPauseAfterFault;
  site.logger.Warning(
      "Machines of label {} on host {} are booted for 10 minutes, since they cannot be started "
      "from saved memory: {}",
      creation.label.name, creation.host.name(), address.error().message());
  co_await RemoveMachine(site.hosts, site.config->name.str(), creation.id);
  co_return std::nullopt;
}

}  // namespace nodepool::drivers::libvirt
