#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "async/task.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "drivers/openstack/compute/machines.h"
#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/network/networks.h"
#include "drivers/openstack/storage/volumes.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;
using driver::QuotaInformation;
using driver::cloud::Instance;

namespace {

// -1 means that there is no limit.
void AddLimit(const json::object& absolute, const char* name, const char* resource, Resources& limits) {
  if (!absolute.contains(name)) return;
  double limit = NumberIn(absolute, name);
  if (limit >= 0) limits[resource] = limit;
}

Task<> AddLimits(Session& session, Service service, std::vector<std::pair<const char*, const char*>> names,
                 Resources& limits) {
  ApiCall call;
  call.service = service;
  call.path = "/limits";
  ApiReply reply = co_await session.Call(std::move(call));
  const json::object* all = ObjectIn(reply.body, "limits");
  const json::object* absolute = all == nullptr ? nullptr : ObjectIn(*all, "absolute");
  if (absolute == nullptr) throw Error(Verdict::kRetry, "the cloud's limits have an unknown form");
  for (const auto& [name, resource] : names) AddLimit(*absolute, name, resource, limits);
}

Task<std::map<std::string, double>> VolumeSizes(Session& session) {
  std::vector<Volume> volumes = co_await ListVolumes(session);
  std::map<std::string, double> sizes;
  for (const Volume& volume : volumes) sizes[volume.id] = volume.gigabytes;
  co_return sizes;
}

QuotaInformation UseOf(const Server& server, const std::vector<Flavor>& flavors,
                       const std::map<std::string, double>& volume_sizes) {
  Resources used{{"instances", 1}};
  auto flavor = std::ranges::find(flavors, server.flavor_id, &Flavor::id);
  if (server.vcpus && server.ram) {
    used["cores"] = *server.vcpus;
    used["ram"] = *server.ram;
  } else if (flavor != flavors.end()) {
    used["cores"] = flavor->vcpus;
    used["ram"] = flavor->ram;
  }
  for (const std::string& volume : server.volumes) {
    auto size = volume_sizes.find(volume);
    if (size == volume_sizes.end()) continue;
    used["volumes"] += 1;
    used["volume-gb"] += size->second;
  }
  return QuotaInformation::Amount(std::move(used));
}

// Does not read the roles of networks: the address is only shown to operators.
std::optional<std::string> PublicAddress(const Server& server) {
  if (!server.access_ipv4.empty()) return server.access_ipv4;
  for (bool is_floating : {true, false}) {
    for (const Address& address : server.addresses) {
      bool is_public = is_floating ? address.is_floating : !IsReservedIpv4(address.text);
      if (address.version == 4 && is_public) return address.text;
    }
  }
  return std::nullopt;
}

}  // namespace

Task<QuotaInformation> ReadLimits(Session& session, Lookups& lookups) {
  co_await lookups.RefreshFlavors();
  Resources limits;
  std::vector<std::pair<const char*, const char*>> compute_names = {
      {"maxTotalInstances", "instances"}, {"maxTotalCores", "cores"}, {"maxTotalRAMSize", "ram"}};
  co_await AddLimits(session, Service::kCompute, std::move(compute_names), limits);
  bool has_volumes = co_await session.Has(Service::kBlockStorage);
  if (has_volumes) {
    std::vector<std::pair<const char*, const char*>> volume_names = {
        {"maxTotalVolumes", "volumes"}, {"maxTotalVolumeGigabytes", "volume-gb"}};
    co_await AddLimits(session, Service::kBlockStorage, std::move(volume_names), limits);
  } else {
    // A label that boots from a volume cannot be served here.
    limits["volumes"] = 0;
    limits["volume-gb"] = 0;
  }
  co_return QuotaInformation::Limit(std::move(limits));
}

QuotaInformation NeedOf(const Flavor& flavor, const OpenstackLabel& label) {
  Resources need{{"cores", flavor.vcpus}, {"instances", 1}, {"ram", flavor.ram}};
  if (label.boot_from_volume) {
    need["volumes"] = 1;
    need["volume-gb"] = label.volume_size;
  }
  return QuotaInformation::Amount(std::move(need));
}

void OddServers::LogUnknownFlavor(const Server& server) {
  if (!flavors_.insert(server.flavor_id).second) return;
  logger_.Warning(
      "Server {} in cloud {} has a flavor that is not listed, {}: it counts as one instance without size",
      server.id, cloud_, server.flavor_id);
}

void OddServers::LogUnreadableOwner(const Server& server) {
  if (!owners_.insert(server.id).second) return;
  logger_.Warning(
      "Server {} in cloud {} has an item nodepool in its metadata that is not a JSON object: it counts "
      "as another program's",
      server.id, cloud_);
}

Task<std::vector<Instance>> ListMachines(Cloud& cloud, OddServers& odd) {
  // An older list would not show what made the cloud refuse.
  auto listing = co_await cloud.servers.Fresh();
  std::vector<Flavor> flavors = co_await cloud.lookups.Flavors();
  bool has_volumes =
      std::ranges::any_of(*listing.items, [](const auto& entry) { return !entry.second.volumes.empty(); });
  std::map<std::string, double> volume_sizes;
  if (has_volumes) volume_sizes = co_await VolumeSizes(cloud.session);
  std::vector<Instance> machines;
  for (const auto& [id, server] : *listing.items) {
    if (server.is_deleted()) continue;
    Instance machine = Describe(cloud.config, server);
    machine.public_ipv4 = PublicAddress(server);
    machine.quota = UseOf(server, flavors, volume_sizes);
    bool is_unknown =
        !server.vcpus && std::ranges::find(flavors, server.flavor_id, &Flavor::id) == flavors.end();
    if (is_unknown) odd.LogUnknownFlavor(server);
    if (HasUnreadableOwner(server.metadata)) odd.LogUnreadableOwner(server);
    machines.push_back(std::move(machine));
  }
  co_return machines;
}

namespace {

using Faults = std::vector<std::string>;

// What the configuration names, each once.
struct Names {
  std::vector<const OpenstackLabel*> labels;
  std::set<std::string> images;
  std::set<std::string> networks;
};

Names NamesIn(const OpenstackConfig& config) {
  Names names;
  names.labels = driver::cloud::LabelsOf<OpenstackLabel>(config);
  for (const OpenstackLabel* label : names.labels) {
    names.networks.insert(label->networks.begin(), label->networks.end());
    if (label->cloud_image) names.images.insert(config.cloud_images.at(*label->cloud_image).external_name);
  }
  return names;
}

Faults FlavorFaults(const std::vector<Flavor>& flavors, const std::vector<const OpenstackLabel*>& labels) {
  Faults faults;
  for (const OpenstackLabel* label : labels) {
    try {
      ChooseFlavor(flavors, *label);
    } catch (const Error& error) {
      faults.push_back(error.message());
    }
  }
  return faults;
}

Task<Faults> ImageFaults(Session& session, std::set<std::string> names) {
  Faults faults;
  std::vector<std::string> wanted(names.begin(), names.end());
  std::map<std::string, std::vector<std::string>> found;
  if (!wanted.empty()) found = co_await FindActiveImages(session, std::move(wanted));
  for (const std::string& name : names) {
    std::size_t count = found[name].size();
    if (count == 0) faults.push_back(fmt::format("the cloud has no active image {}", Excerpt(name)));
    if (count > 1) faults.push_back(fmt::format("the cloud has {} images named {}", count, Excerpt(name)));
  }
  co_return faults;
}

Task<Faults> NetworkFaults(Lookups& lookups, AsyncValue<NetworkRoles>& network_roles,
                           std::set<std::string> names) {
  Faults faults;
  for (const std::string& name : names) {
    Outcome<std::string> found = co_await Attempt(lookups.NetworkId(name));
    if (!found) faults.push_back(found.error().message());
  }
  Outcome<NetworkRoles> roles = co_await Attempt(network_roles.Get());
  if (!roles) faults.push_back(roles.error().message());
  co_return faults;
}

}  // namespace

Task<Faults> FindFaults(Cloud& cloud, OddServers& odd) {
  Names names = NamesIn(cloud.config);
  co_await ReadLimits(cloud.session, cloud.lookups);
  co_await ListMachines(cloud, odd);
  std::vector<Flavor> flavors = co_await cloud.lookups.Flavors();
  Faults faults = FlavorFaults(flavors, names.labels);
  Faults of_images = co_await ImageFaults(cloud.session, names.images);
  Task<Faults> asking = NetworkFaults(cloud.lookups, cloud.addressing.network_roles, names.networks);
  Faults of_networks = co_await std::move(asking);
  std::ranges::move(of_images, std::back_inserter(faults));
  std::ranges::move(of_networks, std::back_inserter(faults));
  co_return faults;
}

}  // namespace nodepool::drivers::openstack
