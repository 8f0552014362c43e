#pragma once

#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <vector>

#include "async/task_group.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/list_cache.h"
#include "driver/cloud/launch/machine_start.h"
#include "drivers/aws/compute/disks.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_request.h"
#include "drivers/aws/config/aws_config.h"

namespace nodepool::drivers::aws {

// The max. age of a list used for counting and cleaning.
constexpr Duration kListAge = std::chrono::seconds(5);

// What creations, deletions and lists of one provider's machines share.
struct AwsCloud {
  // Background work belongs to `tasks`; everything outlives it.
  AwsCloud(const driver::cloud::AdapterEnvironment& for_environment, const AwsConfig& provider,
           const std::string& of_region, Ec2& client, TaskGroup& tasks, const log::Logger& logger);

  const driver::cloud::AdapterEnvironment& environment;
  const AwsConfig& config;
  const std::string& region;
  Ec2& ec2;
  InstanceTypes types;
  MachineImages images;
  LaunchTemplates templates;
  Terminations terminations;
  driver::cloud::RecentMachines<> recent;  // EC2 may not know them everywhere yet (driver-aws.md 18)
  // Those with this provider's tag, read once for all waiting tasks (driver-aws.md 7).
  driver::cloud::api::ListCache<Ec2Instances> instances;
  driver::cloud::api::ListCache<Hosts> hosts;
};

// What a node's external id names; members are empty where there is none.
struct MachineId {
  std::string instance;
  std::string host;  // the dedicated host
};
// {"instance": "i-...", "host": "h-..."}, without what is empty.
boost::json::value ExternalId(const MachineId& id);
// Old records hold the instance's id as plain text.
MachineId ReadExternalId(const boost::json::value& external_id);

// What the framework knows of an instance.
driver::cloud::Instance Describe(const AwsCloud& cloud, const Ec2Instance& instance);

// The machines of a provider: what AwsAdapter is asked about them.

// Makes an instance and waits until it runs and has its addresses (driver-aws.md 8).
Task<driver::cloud::Instance> CreateMachine(AwsCloud& cloud, driver::cloud::MachineReport& machine,
                                            driver::cloud::CreateParameters parameters);

// Terminates the instance and waits until it is gone, then releases its dedicated host, if it has one
// (driver-aws.md 12). Error(kRetry): the host cannot be released yet.
Task<> DeleteMachine(AwsCloud& cloud, driver::cloud::MachineReport& machine, MachineId id);

// All instances of the account that are not terminated, with their sizes; for the quota.
Task<std::vector<driver::cloud::Instance>> ListMachines(AwsCloud& cloud);

// Instances, unused volumes and dedicated hosts with this provider's tag (driver-aws.md 17).
Task<std::vector<driver::cloud::Resource>> MarkedInstances(
    driver::cloud::api::ListCache<Ec2Instances>& instances);
Task<std::vector<driver::cloud::Resource>> MarkedVolumes(Ec2& ec2, std::string provider);
Task<std::vector<driver::cloud::Resource>> MarkedHosts(Ec2& ec2, std::string provider);
// Deletes one of them.
Task<> DeleteMarked(AwsCloud& cloud, driver::cloud::Resource resource);

// Those of `ids` whose instances ended, were stopped or are not listed (driver-aws.md 21).
Task<std::vector<boost::json::value>> MissingInstances(driver::cloud::api::ListCache<Ec2Instances>& instances,
                                                       std::vector<boost::json::value> ids);

// Those of `ids` whose instances are listed as ended or stopped, or whose spot instances AWS has announced to
// take away.
Task<std::vector<driver::cloud::AnnouncedEnd>> EndingInstances(AwsCloud& cloud,
                                                               std::vector<boost::json::value> ids);

}  // namespace nodepool::drivers::aws
