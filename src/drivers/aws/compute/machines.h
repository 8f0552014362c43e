#pragma once

#include <boost/json/value.hpp>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/aws/aws_cloud.h"

// The machines of a provider: what AwsAdapter is asked about them.
namespace nodepool::drivers::aws {

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
