#pragma once

#include <memory>
#include <string>

#include "async/async_cache.h"
#include "drivers/openstack/api/token.h"
#include "drivers/openstack/api/versions.h"

namespace nodepool::drivers::openstack {

// Where a service is, and which microversions it takes.
struct Endpoint {
  std::string url;  // without a trailing slash; paths of calls are appended
  VersionNumber least;
  VersionNumber most;  // {0, 0}: no microversions
};

// Finds the services: by the catalog, or as configured, then by asking them for their
// versions where that is needed (driver-openstack.md 5.2). Asked once each.
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

}  // namespace nodepool::drivers::openstack
