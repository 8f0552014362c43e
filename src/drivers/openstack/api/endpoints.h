#pragma once

#include <boost/json/array.hpp>
#include <memory>
#include <optional>
#include <string>

#include "async/async_cache.h"
#include "drivers/openstack/api/token.h"
#include "drivers/openstack/api/versions.h"
#include "drivers/openstack/config/cloud_config.h"

namespace nodepool::drivers::openstack {

// A service's URL and its range of microversions.
struct Endpoint {
  std::string url;  // without a trailing slash; paths of calls are appended
  VersionNumber min;
  VersionNumber max;  // {0, 0}: no microversions
};

// Finds the services: in the catalog or the configuration, and then, if needed, by their version documents
// (driver-openstack.md 5.2). Reads each once.
class Endpoints {
 public:
  // Everything outlives this.
  Endpoints(net::HttpClient& http, const CloudConfig& cloud, TokenSource& tokens);

  // Null: the cloud does not have the service.
  Task<std::shared_ptr<const Endpoint>> Of(Service service);

 private:
  Task<std::shared_ptr<const Endpoint>> Discover(Service service);
  Task<std::vector<Version>> Ask(std::string url, std::string token);

  net::HttpClient& http_;
  const CloudConfig& cloud_;
  TokenSource& tokens_;
  AsyncCache<Service, std::shared_ptr<const Endpoint>> known_;
};

// The URL of a service in the catalog, by type or alias, name, region and interface
// (driver-openstack.md 5.1); none: the cloud does not have it.
std::optional<std::string> FindEndpoint(const boost::json::array& catalog, const CloudConfig& cloud,
                                        Service service);

}  // namespace nodepool::drivers::openstack
