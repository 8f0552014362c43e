#pragma once

#include <set>
#include <string>

#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

// Removes what deleted servers left behind: ports that are down, and, if configured, floating addresses that
// nothing uses; in our own project only (driver-openstack.md 14.2, 14.3, D-96).
class Housekeeping {
 public:
  explicit Housekeeping(Cloud& cloud) : cloud_(cloud) {}

  // Sweeps in the background, unless a sweep is under way. Call every minute.
  void Start();

 private:
  Task<> Run();
  Task<> CleanPorts();
  Task<> CleanFloatingIps();
  Task<std::set<std::string>> PortsThatAreDown();

  Cloud& cloud_;
  bool is_running_ = false;
  std::set<std::string> suspects_;  // ports that were down in the last sweep
  std::optional<SteadyTime> swept_;
};

}  // namespace nodepool::drivers::openstack
