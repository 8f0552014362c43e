#pragma once

#include <map>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "drivers/aws/api/ec2.h"

namespace nodepool::drivers::aws {

// A request for a spot instance, as EC2 lists it.
struct SpotRequest {
  std::string instance;
  std::string status;   // "marked-for-termination"
  std::string message;  // AWS's words for it
};
std::vector<SpotRequest> ReadSpotRequests(const pugi::xml_node& root);

// Those of the account whose instances AWS will take away: they get notice two minutes before.
Task<std::vector<SpotRequest>> ListMarkedSpotRequests(Ec2& ec2);

}  // namespace nodepool::drivers::aws
