#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/cloud/api/list_cache.h"
#include "drivers/libvirt/host/hypervisor.h"

namespace nodepool::drivers::libvirt {

// The addresses that a host's networks have given to machines. A network's leases are read for all waiting
// machines together, and not at all while none waits: no event announces a lease.
class Addresses {
 public:
  // Everything outlives this object.
  Addresses(TaskGroup& tasks, Random& random, log::Logger logger, Hypervisor& hypervisor);

  // The address of the interface, IPv4 if it has both. `check` is called at each reading; what it throws ends
  // the wait.
  Task<std::string> Wait(std::string network, std::string mac, std::function<void()> check);

 private:
  using Leases = driver::cloud::api::ListCache<std::vector<Lease>>;

  Leases& Of(const std::string& network);

  TaskGroup& tasks_;
  Random& random_;
  log::Logger logger_;
  Hypervisor& hypervisor_;
  std::map<std::string, std::unique_ptr<Leases>> networks_;
};

// The address that the leases give to the interface; empty: none.
std::string AddressIn(const std::vector<Lease>& leases, const std::string& mac);

}  // namespace nodepool::drivers::libvirt
