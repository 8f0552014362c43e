#pragma once

#include <boost/json/value.hpp>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/aws/aws_cloud.h"

namespace nodepool::drivers::aws {

// All instances of the account that are not terminated, with their sizes; for the quota.
Task<std::vector<driver::cloud::Instance>> ListMachines(AwsCloud& cloud);

// Instances, unused volumes and dedicated hosts with this provider's tag (driver-aws.md 17).
Task<std::vector<driver::cloud::Resource>> ListMarked(AwsCloud& cloud);
Task<> DeleteMarked(AwsCloud& cloud, driver::cloud::Resource resource);

// Those of `ids` whose instances ended, were stopped or are not listed (driver-aws.md 21).
Task<std::vector<boost::json::value>> MissingInstances(AwsCloud& cloud, std::vector<boost::json::value> ids);

// Those of `ids` whose instances are listed as ended or stopped, or whose spot instances AWS has announced to
// take away.
Task<std::vector<driver::cloud::AnnouncedEnd>> EndingInstances(AwsCloud& cloud,
                                                               std::vector<boost::json::value> ids);

}  // namespace nodepool::drivers::aws
