#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "async/task_group.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/list_cache.h"
#include "driver/cloud/framework.h"
#include "driver/cloud/launch/recent_machines.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/quota/others_use.h"
#include "drivers/gce/api/compute.h"
#include "drivers/gce/api/storage.h"
#include "drivers/gce/compute/instance.h"
#include "drivers/gce/compute/lookups.h"
#include "drivers/gce/config/gce_config.h"
#include "drivers/gce/credentials/token_fetcher.h"

namespace nodepool::drivers::gce {

// The max. age of a list used for counting and cleaning.
constexpr Duration kListAge = std::chrono::seconds(5);

// The lists of one zone, each read once for all waiting tasks (driver-gce.md 6).
struct ZoneLists {
  using Cache = driver::cloud::api::ListCache<GceInstances>;
  Cache labelled;  // those with the provider's label, if its name can be one; else all
  Cache all;
};

// An instance that was inserted here in the last minute and that no list has shown yet (driver-gce.md 6).
struct NewInstance {
  std::string operation;  // the insert's; empty: it is not known
  std::string zone;
};

// What creations, deletions and lists of one provider share.
struct GceCloud {
  // `http` is used only here.
  GceCloud(driver::cloud::AdapterEnvironment for_environment, std::shared_ptr<const GceConfig> provider,
           Endpoints for_endpoints, Variables variables, std::unique_ptr<net::HttpClient> client);

  driver::cloud::AdapterEnvironment environment;
  std::shared_ptr<const GceConfig> config;
  Endpoints endpoints;
  log::Logger logger{"nodepool.GceAdapter." + config->name.value};
  std::unique_ptr<net::HttpClient> http;
  TokenFetcher fetcher;
  driver::cloud::api::BearerSigner::Tokens tokens;
  driver::cloud::api::BearerSigner signer;
  Compute compute;
  std::optional<Storage> storage;  // the bucket of `object-storage`; none: it is not configured
  TaskGroup tasks;
  MachineTypes types;
  Families families;
  driver::cloud::RecentMachines<NewInstance> fresh;  // by name
  RegionQuota quota;
  driver::cloud::OthersUse others;                          // of its limits
  std::map<std::string, std::unique_ptr<ZoneLists>> lists;  // by zone
  SteadyTime last_change{};                                 // the end of a launch or deletion
  driver::cloud::RareSweeps rare_sweeps;

  Loop& loop() { return environment.loop; }
  // Also of a zone that is not configured any more, where old nodes may be.
  ZoneLists& ListsOf(const std::string& zone);
  // All instances of the zone, from a list that began at most kListAge ago and after all launches and
  // deletions that have ended here. Error(kTimedOut): it takes longer than `limit`: one zone that does not
  // answer does not hold up the others.
  Task<std::shared_ptr<const GceInstances>> RecentList(std::string zone,
                                                       Duration limit = std::chrono::seconds(30));
};

// Whether the instance is this provider's, and the node's and the launch's that are given; empty: any.
bool IsOwn(const GceCloud& cloud, const GceInstance& instance, const std::string& node = "",
           const std::string& attempt = "");

// What the framework knows of an instance.
driver::cloud::Instance Describe(const GceCloud& cloud, const GceInstance& instance);

}  // namespace nodepool::drivers::gce
