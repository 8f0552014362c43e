#include "drivers/libvirt/machine/lists.h"

#include <algorithm>
#include <set>

#include "drivers/libvirt/machine/delete_machine.h"
#include "drivers/libvirt/names/volume_name.h"
#include "drivers/libvirt/placement/capacity.h"
#include "drivers/libvirt/storage/images.h"
#include "drivers/libvirt/warm/delete_templates.h"
#include "drivers/libvirt/warm/make_template.h"
#include "drivers/libvirt/warm/template_id.h"

namespace nodepool::drivers::libvirt {

using driver::cloud::Instance;
using driver::cloud::Resource;

namespace {

constexpr const char* kInstance = "instance";
constexpr const char* kImage = "image";
constexpr const char* kVolume = "volume";

Instance DescribeListed(const Site& site, const Host& host, const DomainInfo& domain) {
  Instance instance;
  instance.external_id = MachineId{host.name(), domain.uuid}.ToText();
  instance.name = domain.name;
  instance.cloud = site.config->name.str();
  instance.host_id = host.name();
  instance.metadata = domain.metadata;
  instance.quota = ToQuota(NeedOf(domain));
  return instance;
}

// What names of volumes have of the UUIDs of machines that run or are being made.
std::set<std::string> LivingMachines(const Site& site, const Host& host,
                                     const std::vector<DomainInfo>& domains) {
  std::set<std::string> living;
  for (const DomainInfo& domain : domains) living.insert(MachineId{host.name(), domain.uuid}.digits());
  for (const auto& [uuid, entry] : site.ledger.entries()) {
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
  std::set<std::string> living = LivingMachines(site, host, domains);
  for (const DomainInfo& domain : domains) {
    if (domain.metadata.empty() || MakingSince(domain) != 0) continue;
    resources.push_back({kInstance, MachineId{host.name(), domain.uuid}.ToText(), domain.metadata});
  }
  for (const VolumeInfo& volume : volumes) {
    if (std::optional<Resource> resource = AsResource(host, volume, living)) {
      resources.push_back(std::move(*resource));
    }
  }
  co_await DeleteUnusedTemplates(site, host, volumes, domains);
  co_await site.old_fetches.Delete(host, volumes, site.environment.loop.SteadyNow());
  co_await host.ResumePaused();
}

}  // namespace

Task<std::vector<Instance>> ListMachines(Site& site) {
  co_await site.Connected();
  std::vector<Instance> instances;
  for (const auto& host : site.hosts) {
    std::vector<DomainInfo> domains = co_await host->Domains();
    for (const DomainInfo& domain : domains) instances.push_back(DescribeListed(site, *host, domain));
  }
  co_return instances;
}

Task<std::vector<Resource>> ListMarked(Site& site) {
  co_await site.Connected();
  std::vector<Resource> resources;
  for (Host* host : site.Usable()) {
    Outcome<> listed = co_await Attempt(AppendMarked(site, *host, resources));
    if (!listed) {
      site.logger.Warning("Host {} could not be searched for leaks; the next sweep tries again: {}",
                          host->name(), listed.error().message());
    }
  }
  co_return resources;
}

Task<> DeleteMarked(Site& site, Resource resource) {
  co_await site.Connected();
  if (resource.type == kInstance) {
    if (std::optional<MachineId> id = ParseMachineId(resource.id))
      co_await DeleteMachine(site, std::move(*id));
    co_return;
  }
  std::size_t slash = resource.id.find('/');
  if (slash == std::string::npos) co_return;
  Host& host = site.At(resource.id.substr(0, slash));
  std::string volume = resource.id.substr(slash + 1);
  if (resource.type == kImage) {
    co_await DeleteImageOn(host, std::move(volume));
  } else {
    co_await host.Use().DeleteVolume(std::move(volume));
  }
}

Task<std::vector<boost::json::value>> MissingMachines(Site& site, std::vector<boost::json::value> ids) {
  co_await site.Connected();
  std::set<std::string> running;
  std::set<std::string> asked;
  for (Host* host : site.Usable()) {
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

}  // namespace nodepool::drivers::libvirt
