#pragma once

#include <optional>
#include <set>
#include <string>

#include "async/task_group.h"
#include "driver/provider_environment.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/config/openstack_config.h"

namespace nodepool::drivers::openstack {

// Removes what deleted servers left behind: ports that are down, and, if configured, floating addresses that
// nothing uses; in our own project only (driver-openstack.md 14.2, 14.3, D-96).
class Housekeeping {
 public:
  // `observer` may be null. The sweeps belong to `tasks`; everything outlives it.
  Housekeeping(const OpenstackConfig& config, Session& session, TaskGroup& tasks,
               driver::ProviderObserver* observer, log::Logger logger)
      : config_(config), session_(session), tasks_(tasks), observer_(observer), logger_(std::move(logger)) {}

  // Sweeps in the background, unless a sweep is under way. Call every minute.
  void Start();

 private:
  Task<> Run();
  Task<> CleanPorts();
  Task<> CleanFloatingIps();
  Task<std::set<std::string>> PortsThatAreDown();

  const OpenstackConfig& config_;
  Session& session_;
  TaskGroup& tasks_;
  driver::ProviderObserver* observer_;
  log::Logger logger_;
  bool is_running_ = false;
  std::set<std::string> suspects_;  // ports that were down in the last sweep
  std::optional<SteadyTime> swept_;
};

}  // namespace nodepool::drivers::openstack
