#pragma once

#include <optional>
#include <string>

#include "drivers/aws/api/ec2.h"

namespace nodepool::drivers::aws {

// The end of what the instance has printed on its console; none: nothing yet. EC2 keeps 64 KiB, and shows
// them after minutes only where the type of the instance cannot show the latest.
Task<std::optional<std::string>> ReadConsole(Ec2& ec2, std::string instance);

}  // namespace nodepool::drivers::aws
