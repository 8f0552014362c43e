#pragma once

#include <boost/json/value.hpp>
#include <memory>
#include <string>

#include "async/task_group.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/list_cache.h"
#include "driver/cloud/framework.h"
#include "driver/cloud/launch/recent_machines.h"
#include "drivers/aws/compute/disks.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_types.h"
#include "drivers/aws/compute/launch_templates.h"
#include "drivers/aws/compute/terminations.h"
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

}  // namespace nodepool::drivers::aws
