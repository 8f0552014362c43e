#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <string>

namespace nodepool::drivers::openstack {

// Environment variables by name.
using Variables = std::map<std::string, std::string>;
Variables ProcessVariables();

// What clouds.yaml, secure.yaml, clouds-public.yaml and the environment say, before
// anything is resolved (driver-openstack.md 3.1, 3.2). Scalars that are not booleans
// are text, as they were written. Holds secrets.
struct CloudFiles {
  boost::json::object clouds;    // by name; the secure file is laid over
  boost::json::object client;    // settings of this host
  boost::json::object profiles;  // vendors' clouds, by name
  Variables variables;
  std::string source;     // the file of the clouds, for messages; empty: none was found
  std::string env_cloud;  // name of the cloud made of OS_* variables; empty: none
};

// Looks at the files afresh; of each kind the first that exists and can be read
// counts. Error(kInvalid) names the file that does not parse.
CloudFiles ReadCloudFiles(Variables variables);

// `over` laid over `base`: mappings are merged, anything else is replaced.
void MergeInto(boost::json::object& base, const boost::json::object& over);

}  // namespace nodepool::drivers::openstack
