#pragma once

#include "driver/cloud/adapter.h"
#include "drivers/aws/aws_cloud.h"

namespace nodepool::drivers::aws {

// Terminates the instance and waits until it is gone, then releases its dedicated host, if it has one
// (driver-aws.md 12). Error(kRetry): the host cannot be released yet.
Task<> DeleteMachine(AwsCloud& cloud, driver::cloud::MachineReport& machine, MachineId id);

}  // namespace nodepool::drivers::aws
