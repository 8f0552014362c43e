#include "drivers/openstack/find_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "async/attempt.h"
#include "base/text.h"
#include "drivers/openstack/compute/quota.h"

namespace nodepool::drivers::openstack {
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
  for (const auto& [pool_name, pool] : config.pools) {
    for (const auto& [label_name, entry] : pool->labels) {
      const auto& label = dynamic_cast<const OpenstackLabel&>(*entry);
      names.labels.push_back(&label);
      names.networks.insert(label.networks.begin(), label.networks.end());
      if (label.cloud_image) names.images.insert(config.cloud_images.at(*label.cloud_image).external_name);
    }
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

Task<Faults> ImageFaults(Cloud& cloud, std::set<std::string> names) {
  Faults faults;
  std::vector<std::string> wanted(names.begin(), names.end());
  std::map<std::string, std::vector<std::string>> found;
  if (!wanted.empty()) found = co_await FindActiveImages(cloud.session, std::move(wanted));
  for (const std::string& name : names) {
    std::size_t count = found[name].size();
    if (count == 0) faults.push_back(fmt::format("the cloud has no active image {}", Excerpt(name)));
    if (count > 1) faults.push_back(fmt::format("the cloud has {} images named {}", count, Excerpt(name)));
  }
  co_return faults;
}

Task<Faults> NetworkFaults(Cloud& cloud, std::set<std::string> names) {
  Faults faults;
  for (const std::string& name : names) {
    Outcome<std::string> found = co_await Attempt(cloud.lookups.NetworkId(name));
    if (!found) faults.push_back(found.error().message());
  }
  Outcome<NetworkRoles> roles = co_await Attempt(cloud.network_roles.Get());
  if (!roles) faults.push_back(roles.error().message());
  co_return faults;
}

}  // namespace

Task<Faults> FindFaults(Cloud& cloud) {
  Names names = NamesIn(*cloud.config);
  co_await ReadLimits(cloud);
  co_await ListMachines(cloud);
  std::vector<Flavor> flavors = co_await cloud.lookups.Flavors();
  Faults faults = FlavorFaults(flavors, names.labels);
  Faults of_images = co_await ImageFaults(cloud, names.images);
  Faults of_networks = co_await NetworkFaults(cloud, names.networks);
  std::ranges::move(of_images, std::back_inserter(faults));
  std::ranges::move(of_networks, std::back_inserter(faults));
  co_return faults;
}

}  // namespace nodepool::drivers::openstack
