#pragma once

#include <boost/json/object.hpp>
#include <map>
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

}  // namespace nodepool::drivers::openstack
