#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "driver/cloud/adapter.h"
#include "drivers/gce/compute/lookups.h"

namespace nodepool::drivers::gce {

// What a launch is to make; everything outlives it.
struct Wanted {
  const driver::cloud::CreateParameters& parameters;
  const GceConfig& config;
  const GceLabel& label;
  const GcePool& pool;
  Candidate candidate = Chosen();  // that it tries now

 private:
  Candidate Chosen() const;
};

// The body of an insert (driver-gce.md 7.1). `image`: as the API names it.
boost::json::object InstanceRequest(const Wanted& wanted, const std::string& image);

}  // namespace nodepool::drivers::gce
