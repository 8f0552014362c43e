#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <string>

#include "drivers/gce/gce_driver.h"

namespace nodepool::drivers::gce {

// A launch under way; everything outlives it.
struct Launch {
  Launch(GceCloud& in, const driver::cloud::CreateParameters& wanted);

  GceCloud& cloud;
  const driver::cloud::CreateParameters& parameters;
  const GceLabel& label;
  const GcePool& pool;
  std::map<std::string, std::string> marks;  // whose the machine is, and what tells this launch from others
  Candidate candidate;                       // that it tries now

  const std::string& name() const { return parameters.hostname; }
  const std::string& zone() const { return candidate.place; }
};

// The body of the insert (driver-gce.md 7.1). `image`: as the API names it.
boost::json::object InstanceRequest(const Launch& launch, const std::string& image);

}  // namespace nodepool::drivers::gce
