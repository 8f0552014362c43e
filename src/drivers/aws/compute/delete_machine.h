#pragma once

#include "driver/cloud/adapter.h"
#include "drivers/aws/aws_cloud.h"

namespace nodepool::drivers::aws {

// Terminates the instance and waits until it is gone (driver-aws.md 12).
Task<> DeleteMachine(AwsCloud& cloud, driver::cloud::MachineReport& machine, std::string instance_id);

}  // namespace nodepool::drivers::aws
