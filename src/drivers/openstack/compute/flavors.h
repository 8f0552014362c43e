#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drivers/openstack/api/session.h"
#include "drivers/openstack/config/openstack_config.h"

namespace nodepool::drivers::openstack {

struct Flavor {
  std::string id;
  std::string name;
  int vcpus = 0;
  int ram = 0;  // MiB
};

// By memory, then by name.
Task<std::vector<Flavor>> ListFlavors(Session& session);

// The one for a label: the smallest with enough memory whose name contains
// flavor-name, or the one of exactly that name or id (driver-openstack.md 12.1).
// Error(kInvalid): there is none (D-91).
const Flavor& ChooseFlavor(const std::vector<Flavor>& flavors, const OpenstackLabel& label);

}  // namespace nodepool::drivers::openstack
