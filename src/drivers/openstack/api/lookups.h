#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "async/async_cache.h"
#include "async/async_value.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/compute/flavors.h"

namespace nodepool::drivers::openstack {

// Things of the cloud that are asked for by name and remembered until a creation
// shows that they are out of date (driver-openstack.md 12).
class Lookups {
 public:
  explicit Lookups(Session& session);

  // Error(kInvalid): none, or several.
  Task<std::string> NetworkId(std::string name_or_id);

  Task<std::vector<Flavor>> Flavors();
  // Null: not read yet.
  const std::vector<Flavor>* KnownFlavors() const { return known_flavors_ ? &*known_flavors_ : nullptr; }
  // Asks again; what is known stays so until there is an answer.
  Task<> RefreshFlavors();

  // The zones that are available; one unnamed zone when the cloud lists none.
  Task<std::vector<std::optional<std::string>>> Zones();

  // A creation was refused as wrong: everything is asked anew.
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

// The active images of each of these names or ids, by what was asked for; one call for all
// names.
Task<std::map<std::string, std::vector<std::string>>> FindActiveImages(Session& session,
                                                                       std::vector<std::string> names);

}  // namespace nodepool::drivers::openstack
