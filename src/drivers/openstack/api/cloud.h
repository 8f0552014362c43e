#pragma once

#include <memory>

#include "driver/cloud/api/list_cache.h"
#include "driver/cloud/framework.h"
#include "drivers/openstack/api/lookups.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/config/openstack_config.h"
#include "drivers/openstack/network/addressing.h"
#include "drivers/openstack/storage/cloud_images.h"

namespace nodepool::drivers::openstack {

// What creations, deletions and look-ups of one provider share: its session, shared lists and cached
// look-ups.
struct Cloud {
  // Background work belongs to `tasks`; everything outlives it.
  Cloud(const driver::cloud::AdapterEnvironment& environment, const OpenstackProviderConfig& provider,
        net::HttpClient& http, TaskGroup& tasks, log::Logger for_faults);

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
