#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "driver/cloud/api/list_cache.h"
#include "drivers/libvirt/config/host_config.h"
#include "drivers/libvirt/host/hypervisor.h"

namespace nodepool::drivers::libvirt {

class Host;

// A machine whose address is looked for.
struct AddressSearch {
  std::string uuid;
  std::string mac;
  MachineNetwork network;  // a libvirt network or a bridge
};

// The addresses that machines of a host have been given. A network is asked for all waiting machines
// together, and not at all while none waits, since no event announces an address: a libvirt network for its
// leases, of a bridge the guest agents, and where they know nothing the ARP table.
class Addresses {
 public:
  // Everything outlives this object.
  Addresses(TaskGroup& tasks, Random& random, log::Logger logger, Host& host);

  // The address of the interface, IPv4 if it has both. `check` is called at each reading; what it throws ends
  // the wait. While the host cannot be reached it goes on. LaunchError(kNetwork): another running machine has
  // the address.
  Task<std::string> Wait(AddressSearch search, std::function<void()> check);

  // Notes an address that was found otherwise. LaunchError(kNetwork): another running machine has it.
  void Claim(const MachineNetwork& network, const std::string& address, const std::string& uuid);

 private:
  using List = driver::cloud::api::ListCache<std::vector<KnownAddress>>;
  struct Searched {
    std::unique_ptr<List> list;
    std::map<std::string, AddressSearch> searches;  // by UUID
    std::map<std::string, std::string> owners;  // UUIDs of machines by the address that was found for them
    SteadyTime last_begun{};
  };

  Searched& Of(const MachineNetwork& network);
  Task<std::vector<KnownAddress>> ReadLeases(Searched& searched, std::string network);
  Task<std::vector<KnownAddress>> ReadMachines(Searched& searched);
  Task<std::vector<KnownAddress>> ReadMachine(std::string uuid);

  TaskGroup& tasks_;
  Random& random_;
  log::Logger logger_;
  Host& host_;
  std::map<std::string, Searched> bridges_;
  std::map<std::string, Searched> networks_;
};

// The address of the interface by which others can reach it; empty: none is known.
std::string AddressIn(const std::vector<KnownAddress>& addresses, const std::string& mac);

// Metadata of a domain: the port of its host at which it is reached.
inline constexpr const char* kPortKey = "nodepool_port";

// One of a host's ports for machines, 22000 to 22999, that is not taken; none: all are. Any of them, since
// ports that another program has are often neighbours.
std::optional<int> FreePort(const std::set<int>& taken, Random& random);

// Ports of a host that something else has had: left out for a while by all machines.
class RefusedPorts {
 public:
  void Add(int port, SteadyTime now);
  std::set<int> At(SteadyTime now);

 private:
  std::map<int, SteadyTime> until_;
};

// Whether a machine could not be started since something else has its port.
bool IsPortTaken(const Error& error);

// Where a host binds forwarded ports that are reached at `address`; "": at all of its addresses.
std::string BindAddress(const std::string& address);

}  // namespace nodepool::drivers::libvirt
