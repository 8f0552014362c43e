#include "drivers/gce/gce_cloud.h"

#include <algorithm>

#include "async/deadline.h"
#include "driver/cloud/launch/instance.h"
#include "driver/cloud/metadata.h"
#include "drivers/gce/compute/quota.h"

namespace nodepool::drivers::gce {

namespace {

constexpr Duration kRenewBefore = std::chrono::minutes(5);
constexpr Duration kNew = std::chrono::seconds(60);
constexpr const char* kCloudName = "Google";

// Empty: Google does not accept the provider's name as a label.
std::string LabelFor(const GceConfig& config) {
  std::string name = config.name.str();
  return IsLabelValue(name) ? name : "";
}

std::string RegionOf(const std::string& zone) { return zone.substr(0, zone.rfind('-')); }

}  // namespace

GceCloud::GceCloud(driver::cloud::AdapterEnvironment for_environment,
                   std::shared_ptr<const GceConfig> provider, Endpoints for_endpoints, Variables variables,
                   std::unique_ptr<net::HttpClient> client)
    : environment(std::move(for_environment)),
      config(std::move(provider)),
      endpoints(std::move(for_endpoints)),
      http(std::move(client)),
      fetcher(environment.loop, environment.blocking_pool, environment.random, *http, endpoints,
              config->credentials_file, std::move(variables), logger),
      tokens(
          environment.loop, [this] { return fetcher.Fetch(); }, kRenewBefore),
      signer(tokens),
      compute(environment.loop, environment.blocking_pool, environment.random, *http, endpoints,
              config->project, signer, logger,
              ClientSettings{config->rate, {environment.observer, config->name, "gce"}}),
      tasks(environment.loop, logger),
      types(compute),
      families(environment.loop, compute, logger),
      fresh(environment.loop, kNew),
      quota(compute, config->region, logger),
      others(tasks, environment.framework) {
  if (!config->bucket) return;
  storage.emplace(environment.loop, environment.blocking_pool, environment.random, *http, endpoints,
                  *config->bucket, signer, logger,
                  ClientSettings{0, {environment.observer, config->name, "gce"}});
}

ZoneLists& GceCloud::ListsOf(const std::string& zone) {
  std::unique_ptr<ZoneLists>& found = lists[zone];
  if (found) return *found;
  std::string name = "instances of provider " + config->name.str() + " in " + zone;
  auto read = [this, zone](std::string label) { return ListInstancesIn(compute, zone, std::move(label)); };
  found = std::unique_ptr<ZoneLists>(new ZoneLists{
      {tasks, environment.random, logger, name, [this, read] { return read(LabelFor(*config)); }},
      {tasks, environment.random, logger, "all " + name, [read] { return read(""); }}});
  return *found;
}

Task<std::shared_ptr<const GceInstances>> GceCloud::RecentList(std::string zone, Duration limit) {
  SteadyTime now = loop().SteadyNow();
  Task<ZoneLists::Cache::Listing> list = ListsOf(zone).all.After(std::max(now - kListAge, last_change));
  ZoneLists::Cache::Listing listing =
      co_await WithDeadline(loop(), now + limit, "listing the instances of zone " + zone, std::move(list));
  co_return listing.items;
}

bool IsOwn(const GceCloud& cloud, const GceInstance& instance, const std::string& node,
           const std::string& attempt) {
  driver::cloud::Owner owner = driver::cloud::OwnerOf(instance.metadata);
  bool is_node = node.empty() || (owner.node && owner.node->str() == node);
  return owner.provider == cloud.config->name.str() && is_node &&
         (attempt.empty() || owner.attempt == attempt);
}

driver::cloud::Instance Describe(const GceCloud& cloud, const GceInstance& instance) {
  driver::cloud::Instance described;
  described.external_id = ExternalId({instance.name, instance.zone}, cloud.config->zone);
  described.name = instance.name;
  described.metadata = instance.metadata;
  described.cloud = kCloudName;
  described.region = RegionOf(instance.zone);
  if (!instance.zone.empty()) described.az = instance.zone;
  driver::cloud::SetAddresses({instance.public_ipv4, instance.public_ipv6, instance.private_ipv4}, described);
  described.quota = driver::QuotaInformation::Amount(UseOf(cloud, instance));
  return described;
}

}  // namespace nodepool::drivers::gce
