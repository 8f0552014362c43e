#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/aws/api/ec2.h"
#include "drivers/aws/storage/machine_images.h"

namespace nodepool::drivers::aws {

// The call that makes one instance of the types of the label's fleet, of which AWS chooses one, in the places
// of its pool (driver-aws.md 9.2). Sent again with the same token it makes no second one.
Query CreateFleet(const driver::cloud::CreateParameters& parameters, const MachineImage& image,
                  const std::string& template_name, const std::map<std::string, std::string>& tags,
                  const std::string& token);

// Why AWS made no instance of a candidate.
struct FleetError {
  std::string code;
  std::string message;
};

struct FleetAnswer {
  std::string instance;            // its id; empty: none was made
  std::vector<FleetError> errors;  // of the candidates; may be there beside an instance
};
FleetAnswer ReadFleet(const pugi::xml_node& root);

// Throws what the errors of a fleet without an instance mean: kQuota if one is about a limit; a LaunchError
// for lack of capacity if all are; kInvalid if no candidate can ever be made; else kFail.
[[noreturn]] void ThrowFleetErrors(const std::vector<FleetError>& errors);

}  // namespace nodepool::drivers::aws
