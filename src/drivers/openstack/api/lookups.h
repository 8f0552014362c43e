#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "async/async_cache.h"
#include "async/async_value.h"
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

// The flavor for a label: the smallest with enough memory whose name contains flavor-name, or the one with
// exactly that name or id (driver-openstack.md 12.1). Error(kInvalid): there is none (D-91).
const Flavor& ChooseFlavor(const std::vector<Flavor>& flavors, const OpenstackLabel& label);

// Look-ups of the cloud's objects by name, cached until a creation shows that they are out of date
// (driver-openstack.md 12).
class Lookups {
 public:
  explicit Lookups(Session& session);

  // Error(kInvalid): there is none, or there are several.
  Task<std::string> NetworkId(std::string name_or_id);

  Task<std::vector<Flavor>> Flavors();
  // Null: not read yet.
  const std::vector<Flavor>* KnownFlavors() const { return known_flavors_ ? &*known_flavors_ : nullptr; }
  // Reads the flavors again; the cached ones stay valid until the answer arrives.
  Task<> RefreshFlavors();

  // The zones that are available; one unnamed zone when the cloud lists none.
  Task<std::vector<std::optional<std::string>>> Zones();

  // Drops everything cached; called when a creation was refused as invalid.
  void Clear();

 private:
  Task<std::string> FindNetwork(std::string name_or_id);
  Task<std::vector<Flavor>> ReadFlavors();
  Task<std::vector<std::optional<std::string>>> ReadZones();

  Session& session_;
  AsyncCache<std::string, std::string> networks_;
  AsyncValue<std::vector<Flavor>> flavors_;
  std::optional<std::vector<Flavor>> known_flavors_;
  AsyncValue<std::vector<std::optional<std::string>>> zones_;
};

// The active images for each of these names or ids, by the name or id asked for; one call for all names.
Task<std::map<std::string, std::vector<std::string>>> FindActiveImages(Session& session,
                                                                       std::vector<std::string> names);

}  // namespace nodepool::drivers::openstack
