#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>

#include "driver/cloud/api/api_client.h"
#include "drivers/openstack/api/endpoints.h"
#include "drivers/openstack/api/token.h"

namespace nodepool::drivers::openstack {

// A call of a service.
struct ApiCall {
  Service service = Service::kCompute;
  std::string method = "GET";
  std::string path;   // below the service's address: "/servers/detail"
  std::string query;  // without "?"
  std::optional<boost::json::value> body;
  std::optional<net::HttpUpload> upload;
  std::optional<Duration> upload_limit;  // for the whole upload
  VersionNumber microversion;            // the highest to name; {0, 0}: none is named
  bool may_be_repeated = false;          // a POST that creates nothing; other methods always may
};

using driver::cloud::api::ApiReply;

// Calls one cloud's services under one login: finds the services and names microversions; ApiClient does the
// rest (D-90).
class Session {
 public:
  struct Options {
    std::optional<double> rate;  // seconds between calls that change something (D-90)
    driver::cloud::api::CallMetrics metrics;
  };

  // Everything outlives the session.
  Session(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, CloudConfig cloud,
          Options options);

  // Errors: those of ApiClient::CallJson; Error(kInvalid) when the cloud does not have the service.
  Task<ApiReply> Call(ApiCall call);

  // False: there is nothing at that path.
  Task<bool> Delete(Service service, std::string path, VersionNumber microversion = {});

  Task<bool> Has(Service service);
  // Whether calls to compute may name that microversion.
  Task<bool> TakesMicroversion(VersionNumber version);
  Task<std::string> ProjectId();

  const CloudConfig& cloud() const { return cloud_; }
  Loop& loop() { return loop_; }

 private:
  std::string MicroversionFor(const ApiCall& call, const Endpoint& endpoint) const;
  net::HttpCall HttpCallFor(ApiCall call, const Endpoint& endpoint) const;

  Loop& loop_;
  CloudConfig cloud_;
  TokenSource tokens_;
  Endpoints endpoints_;
  driver::cloud::api::ApiClient client_;
};

}  // namespace nodepool::drivers::openstack
