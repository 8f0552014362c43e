#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/async_cache.h"
#include "async/event.h"
#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/list_cache.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/config/openstack_config.h"
#include "drivers/openstack/network/networks.h"
#include "drivers/openstack/storage/images.h"

namespace nodepool::drivers::openstack {

// How the servers of one provider are reached: what creations and deletions share of networks and floating
// addresses.
struct Addressing {
  // Returns the first of a server's addresses that accepts a connection; nullopt: none did by the deadline.
  using Probe = std::function<Task<std::optional<std::string>>(std::vector<std::string>, SteadyTime)>;

  // The lists are read by `tasks`; everything outlives it. `to_try`: null: by connections.
  Addressing(Session& of_cloud, TaskGroup& tasks, Random& random, const std::string& provider,
             log::Logger for_faults, Probe to_try);

  Session& session;
  log::Logger logger;
  // Read once for all waiting tasks (driver-openstack.md 8, D-93).
  driver::cloud::api::ListCache<FloatingIps> floating_ips;
  AsyncValue<NetworkRoles> network_roles;
  // Floating addresses made here, by server: known before nova shows them.
  std::map<std::string, std::string> floating_ip_of;
  bool has_ipv6 = false;  // of this host
  Probe probe;
};

// The addresses of a server that is active. Creates a floating IP if one is wanted; otherwise finds those
// that nova does not show (driver-openstack.md 9.2).
Task<ChosenAddresses> FindAddresses(Addressing& addressing, driver::cloud::MachineReport& machine,
                                    bool wants_floating_ip, Server& server);

// The floating addresses of a server that nova does not show (driver-openstack.md 9.2). The server's ports
// are read only if the shared list of floating addresses has candidates. Errors are logged and count as none.
Task<std::vector<FloatingAddress>> FindHiddenFloatingIps(Addressing& addressing, Server server);

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

// What creations, deletions and look-ups of one provider share: its session, shared lists and cached
// look-ups.
struct Cloud {
  // Background work belongs to `tasks`; everything outlives it. `probe`: null: by connections.
  Cloud(const driver::cloud::AdapterEnvironment& environment, const OpenstackProviderConfig& provider,
        net::HttpClient& http, TaskGroup& tasks, log::Logger for_faults, Addressing::Probe probe);

  const OpenstackProviderConfig& config;
  log::Logger logger;
  Session session;
  Lookups lookups;
  CloudImages images;
  // Read once for all waiting tasks (driver-openstack.md 8, D-93).
  driver::cloud::api::ListCache<Servers> servers;
  Addressing addressing;

  // Drops all cached look-ups; called when a creation was refused as invalid.
  void DropLookups();
};

}  // namespace nodepool::drivers::openstack
