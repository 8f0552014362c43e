#include "drivers/openstack/compute/flavors.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "drivers/openstack/api/paging.h"

namespace nodepool::drivers::openstack {

namespace {

Flavor ReadFlavorEntry(const boost::json::object& entry) {
  Flavor flavor;
  flavor.id = TextIn(entry, "id");
  flavor.name = TextIn(entry, "name");
  flavor.vcpus = static_cast<int>(NumberIn(entry, "vcpus"));
  flavor.ram = static_cast<int>(NumberIn(entry, "ram"));
  return flavor;
}

std::string NamesOf(const std::vector<Flavor>& flavors) {
  constexpr std::size_t kMost = 20;
  std::vector<std::string> names;
  for (const Flavor& flavor : flavors) {
    if (names.size() < kMost) names.push_back(flavor.name);
  }
  if (flavors.size() > kMost) names.emplace_back("...");
  return Join(names, ", ");
}

}  // namespace

Task<std::vector<Flavor>> ListFlavors(Session& session) {
  ApiCall call;
  call.path = "/flavors/detail";
  call.query = "is_public=None";
  call.microversion = {2, 61};
  std::vector<Flavor> flavors = co_await List(session, std::move(call), "flavors", &ReadFlavorEntry);
  std::ranges::sort(flavors, {}, [](const Flavor& flavor) { return std::pair(flavor.ram, flavor.name); });
  co_return flavors;
}

const Flavor& ChooseFlavor(const std::vector<Flavor>& flavors, const OpenstackLabel& label) {
  for (const Flavor& flavor : flavors) {
    bool is_fit = false;
    if (label.min_ram > 0) {
      is_fit = flavor.ram >= label.min_ram &&
               flavor.name.find(label.flavor_name.value_or("")) != std::string::npos;
    } else if (label.flavor_name) {
      is_fit = flavor.name == *label.flavor_name || flavor.id == *label.flavor_name;
    }
    if (is_fit) return flavor;
  }
  std::string what = label.min_ram > 0
                         ? fmt::format("Unable to find flavor with min ram: {}", label.min_ram)
                         : fmt::format("Unable to find flavor: {}", label.flavor_name.value_or(""));
  throw Error(Verdict::kInvalid,
              fmt::format("{} (label {}); the cloud has: {}", what, label.name, NamesOf(flavors)));
}

}  // namespace nodepool::drivers::openstack
