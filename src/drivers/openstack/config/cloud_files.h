#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <optional>
#include <string>

namespace nodepool::drivers::openstack {

// Environment variables by name.
using Variables = std::map<std::string, std::string>;
Variables ProcessVariables();

// The contents of clouds.yaml, secure.yaml, clouds-public.yaml and the environment, before anything is
// resolved (driver-openstack.md 3.1, 3.2). Scalars that are not booleans are text, as written. Contains
// secrets.
struct CloudFiles {
  boost::json::object clouds;    // by name; the secure file overrides them
  boost::json::object client;    // settings of this host
  boost::json::object profiles;  // vendors' clouds, by name
  Variables variables;
  std::string source;     // the file of the clouds, for messages; empty: none was found
  std::string search;     // where the file was searched for, for messages
  std::string env_cloud;  // name of the cloud defined by OS_* variables; empty: none
};

// Reads the files; of each kind, the first that exists and is readable is used. Error(kInvalid) names the
// file that does not parse.
CloudFiles ReadCloudFiles(Variables variables);

// Overrides `base` with `over`: mappings are merged, anything else is replaced.
void MergeInto(boost::json::object& base, const boost::json::object& over);

// A cloud's settings with its profile, region and synonyms applied, flat except for
// `auth` and `networks` (driver-openstack.md 3.3, steps 1 to 7). `resolved_name` is
// set to the name of the cloud. Error(kInvalid).
boost::json::object OverlaidCloud(const CloudFiles& files, const std::optional<std::string>& name,
                                  const std::optional<std::string>& region, std::string& resolved_name);

// driver-openstack.md 3.3, step 9.
bool ForcesIpv4(const CloudFiles& files, const boost::json::object& cloud);

// A scalar as a setting: text as written, "true"/"false" for booleans; empty for null and anything else.
std::string TextOf(const boost::json::value* value);
// A boolean, or a text that means one; nullopt: neither.
std::optional<bool> TruthOf(const boost::json::value& value);

}  // namespace nodepool::drivers::openstack
