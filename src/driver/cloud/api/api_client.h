#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <optional>
#include <string>

#include "async/blocking_pool.h"
#include "async/gate.h"
#include "async/loop.h"
#include "base/log/logging.h"
#include "base/random.h"
#include "driver/cloud/api/api_error.h"
#include "driver/cloud/api/rate_limiter.h"
#include "driver/cloud/api/signer.h"
#include "driver/observer.h"
#include "net/http/http_client.h"

namespace nodepool::driver::cloud::api {

// A call of a cloud's service.
struct ApiRequest {
  std::string service;             // "compute": pauses are per service; metrics and log lines name it
  std::string name;                // in metrics, without ids: "servers_detail"
  std::string text;                // in error messages: "GET compute /servers/detail"
  net::HttpCall call;              // without the signature
  int retries = 5;                 // how often it is repeated while the service is overloaded
  std::optional<bool> only_reads;  // none: depends on the method
  // A creation under a name of our choice: done twice, the second is refused.
  bool creates_by_name = false;

  bool reads() const { return only_reads.value_or(call.method == "GET"); }
  bool is_idempotent() const { return reads() || creates_by_name || call.method != "POST"; }
};

struct ApiReply {
  int status = 0;
  net::HttpHeaders headers;
  boost::json::value body;  // null: the answer has none
  std::size_t bytes = 0;    // of the body's text
};

// Where calls are counted, and for which provider.
struct CallMetrics {
  ProviderObserver* observer = nullptr;  // null: they are not counted
  ProviderName provider;
  std::string driver;
};

// Calls one cloud's services under one account. Signs the calls; bounds how many are under way; backs off
// from a service that asks for it (429, 503, Retry-After); renews the signature once when a service does not
// accept it (401); repeats once what may be repeated after a network fault.
class ApiClient {
 public:
  struct Options {
    std::string cloud;  // its name, for log lines
    FaultReader read_fault = &ReadFault;
    // Limit for calls that change something; none: unlimited.
    std::optional<RateLimiter::Settings> change_rate;
    CallMetrics metrics;
  };

  // Everything outlives the client, and the client all calls.
  ApiClient(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, Signer& signer,
            log::Logger logger, Options options);

  // Returns the answer if its status is below 400. Errors: ApiError for another status; HttpError if there is
  // no answer; what the signer throws.
  Task<net::HttpReply> Call(ApiRequest request);

  // The same for an API that answers JSON; Error(kRetry) if the answer is not JSON. Large answers are parsed
  // off the loop.
  Task<ApiReply> CallJson(ApiRequest request);

 private:
  struct Answer {
    Outcome<net::HttpReply> reply;
    Signer::Renew renew;
  };

  Task<net::HttpReply> Repeat(const ApiRequest& request);
  Task<> WaitForTurn(const ApiRequest& request);
  Task<Answer> Send(const ApiRequest& request);
  Task<net::HttpReply> SendCounted(const ApiRequest& request, net::HttpCall call);
  Duration PauseService(const ApiRequest& request, const net::HttpReply& reply, Duration otherwise);
  void Count(const ApiRequest& request, int status, Duration duration) const;

  Loop& loop_;
  BlockingPool& pool_;
  Random& random_;
  net::HttpClient& http_;
  Signer& signer_;
  log::Logger logger_;
  Options options_;
  // Separate gates, so that reads never queue behind changes.
  Gate reads_;
  Gate changes_;
  Gate uploads_;
  std::optional<RateLimiter> change_rate_;
  std::map<std::string, SteadyTime> paused_until_;  // by service
};

}  // namespace nodepool::driver::cloud::api
