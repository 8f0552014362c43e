#pragma once

#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "async/blocking_pool.h"
#include "async/gate.h"
#include "async/loop.h"
#include "base/logging.h"
#include "base/random.h"
#include "drivers/openstack/endpoints.h"
#include "drivers/openstack/token.h"
#include "net/http_client.h"

namespace nodepool::drivers::openstack {

// What to ask of a service.
struct ApiCall {
  Service service = Service::kCompute;
  std::string method = "GET";
  std::string path;   // below the service's address: "/servers/detail"
  std::string query;  // without "?"
  std::optional<boost::json::value> body;
  std::optional<net::HttpUpload> upload;
  std::optional<Duration> upload_limit;  // for all of an upload
  VersionNumber microversion;            // at most; {0, 0}: none is named
  bool changes_something() const { return method != "GET"; }
};

struct ApiReply {
  int status = 0;
  net::HttpHeaders headers;
  boost::json::value body;  // null without one
};

// One call as metrics see it (driver-openstack.md 18).
struct ApiCallEnd {
  Service service;
  std::string method;
  std::string path;
  int status = 0;  // 0: there was no answer
  Duration took{};
};

// Calls to one cloud's services under one login. Bounds how many are under way,
// renews the token, waits when a service asks for it (429, 503, Retry-After, D-90),
// and repeats what may be repeated after a fault of the network.
class Session {
 public:
  struct Options {
    std::optional<double> rate;  // seconds between calls that change something (D-90)
    std::function<void(const ApiCallEnd&)> observer;
  };

  // Everything outlives the session.
  Session(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, CloudConfig cloud,
          Options options);

  // The answer when its status is below 400, else ApiError; HttpError without one;
  // Error(kRetry) when it is no JSON; Error(kInvalid) when the cloud does not have
  // the service.
  Task<ApiReply> Call(ApiCall call);

  Task<bool> Has(Service service);
  // Whether calls to compute may name that microversion.
  Task<bool> TakesMicroversion(VersionNumber version);
  Task<std::string> ProjectId();

  const CloudConfig& cloud() const { return cloud_; }
  Loop& loop() { return loop_; }

 private:
  struct Attempt;

  Task<net::HttpReply> SendPatiently(ApiCall call);
  Task<net::HttpReply> SendOnce(const ApiCall& call, std::shared_ptr<const Token> token, std::string url,
                                std::string microversion);
  Task<> WaitForTurn(const ApiCall& call);
  std::string MicroversionFor(const ApiCall& call, const Endpoint& endpoint) const;
  void Tell(const ApiCall& call, int status, SteadyTime started) const;

  Loop& loop_;
  BlockingPool& pool_;
  Random& random_;
  net::HttpClient& http_;
  CloudConfig cloud_;
  Options options_;
  log::Logger logger_{"nodepool.OpenStackAdapter"};
  TokenSource tokens_;
  Endpoints endpoints_;
  // Of their own each: nobody who looks waits behind many who change.
  Gate reads_;
  Gate changes_;
  Gate uploads_;
  std::map<Service, SteadyTime> paused_until_;
  SteadyTime next_change_{};
};

// JSON from outside; large ones are parsed off the loop. Error(kRetry) when it is
// none; the message shows its beginning.
Task<boost::json::value> ParseAnswer(BlockingPool& pool, std::string text, std::string place);

}  // namespace nodepool::drivers::openstack
