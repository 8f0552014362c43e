#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>

#include "drivers/openstack/config/cloud_files.h"

namespace nodepool::drivers::openstack {

// A cloud's settings with its profile, region and synonyms applied, flat except for
// `auth` and `networks` (driver-openstack.md 3.3, steps 1 to 7). `resolved_name` is
// set to the name of the cloud. Error(kInvalid).
boost::json::object OverlaidCloud(const CloudFiles& files, const std::optional<std::string>& name,
                                  const std::optional<std::string>& region, std::string& resolved_name);

// driver-openstack.md 3.3, step 9.
bool ForcesIpv4(const CloudFiles& files, const boost::json::object& cloud);

// Scalars as settings: text as it was written, "true"/"false" for booleans; empty for
// null and anything else.
std::string TextOf(const boost::json::value* value);
// A boolean, or a text that says one; none: neither.
std::optional<bool> TruthOf(const boost::json::value& value);
std::string Lower(std::string text);

}  // namespace nodepool::drivers::openstack
