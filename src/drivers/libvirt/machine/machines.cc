#include "drivers/libvirt/machine/machines.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "drivers/libvirt/names.h"
#include "drivers/libvirt/placement/capacity.h"
#include "drivers/libvirt/storage/images.h"
#include "drivers/libvirt/warm/templates.h"

namespace nodepool::drivers::libvirt {

using driver::cloud::Instance;
using driver::cloud::Resource;

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
