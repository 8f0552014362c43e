#pragma once

#include "driver/cloud/adapter.h"
#include "drivers/aws/aws_cloud.h"

namespace nodepool::drivers::aws {

// Makes an instance and waits until it runs and has its addresses (driver-aws.md 8).
Task<driver::cloud::Instance> CreateMachine(AwsCloud& cloud, driver::cloud::MachineReport& machine,
                                            driver::cloud::CreateParameters parameters);

}  // namespace nodepool::drivers::aws
