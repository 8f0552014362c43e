#pragma once

#include "config/schema/schema.h"

namespace nodepool::drivers::aws {

// A provider's section of driver `aws` (driver-aws.md 2); strict validation agrees with the Python validator.
const config::Schema& AwsSchema();

}  // namespace nodepool::drivers::aws
