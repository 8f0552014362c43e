#pragma once

#include <set>
#include <string>

#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

// Removes what servers left behind and nothing owns: ports that are down, and, when
// configured, floating addresses that nothing uses; of our own project only
// (driver-openstack.md 14.2, 14.3, D-96).
class Housekeeping {
 public:
  explicit Housekeeping(Cloud& cloud) : cloud_(cloud) {}

  // Sweeps in the background, unless a sweep is under way. To be called every minute.
  void Start();

 private:
  Task<> Run();
  Task<> CleanPorts();
  Task<> CleanFloatingIps();
  Task<std::set<std::string>> PortsThatAreDown();

  Cloud& cloud_;
  bool is_running_ = false;
  std::set<std::string> suspects_;  // ports that were down at the last sweep
  std::optional<SteadyTime> swept_;
};

}  // namespace nodepool::drivers::openstack
