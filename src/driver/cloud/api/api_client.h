#pragma once

#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "async/backoff.h"
#include "async/blocking_pool.h"
#include "async/event.h"
#include "async/loop.h"
#include "base/ids.h"
#include "base/log/logging.h"
#include "driver/cloud/api/api_error.h"
#include "driver/cloud/api/rate_limiter.h"
#include "driver/provider_environment.h"
#include "net/http/http_client.h"

namespace nodepool::driver::cloud::api {

// Authenticates calls: adds a token or a signature.
class Signer {
 public:
  virtual ~Signer() = default;

  // Discards the credential of a call, so that the next call gets a new one; gets the refusal.
  using Renew = std::function<void(const net::HttpReply& refusal)>;

  // Signs `call`, which is otherwise complete. Fetches a credential first if none is known, through a
  // net::HttpClient and not the ApiClient that it signs for; what that throws ends the call. The result is
  // called if the service does not accept the signature (Fault::refuses_signature); the call is then
  // repeated once. Null: repeating would not help.
  virtual Task<Renew> Sign(net::HttpCall& call) = 0;
};

// For services that need no credential, such as those that give one.
class NoSigner : public Signer {
 public:
  Task<Renew> Sign(net::HttpCall&) override { co_return nullptr; }
};

// A call of a cloud's service.
struct ApiRequest {
  std::string service;             // "compute": metrics and log lines name it
  std::string budget;              // calls that the service counts together pause together; empty: all of it
  std::string name;                // in metrics, without ids: "servers_detail"
  std::string text;                // in error messages: "GET compute /servers/detail"
  net::HttpCall call;              // without the signature
  int retries = 5;                 // how often it is repeated while the service is overloaded
  std::optional<bool> only_reads;  // none: depends on the method
  // The service does it once however often it is sent: it recognises the call by a token or by a name of our
  // choice, or the call says how things shall be in the end.
  bool may_be_sent_again = false;
  // It frees something, and waits behind calls that do not where the rate is limited; none: depends on the
  // method.
  std::optional<bool> frees;

  bool is_freeing() const { return frees.value_or(call.method == "DELETE"); }
  bool reads() const { return only_reads.value_or(call.method == "GET"); }
  bool is_idempotent() const { return reads() || may_be_sent_again || call.method != "POST"; }
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

// What an operator does about a call without a usable answer; part of the error. Empty: nothing is said.
struct Remedies {
  std::string unknown_host;  // the name service does not know the service's host
  std::string no_answer;     // the network, a time-out, a connection that broke
  std::string odd_answer;    // in another format than the API's
};

// Throws why there was no answer, with the call's name and the remedy if there is one.
[[noreturn]] void ThrowWithoutAnswer(std::string_view call, const Remedies& remedies, const Failure& failure);

// Calls one cloud's services under one account. Signs the calls; bounds how many are under way; backs off
// from a service that asks for it (429, 503, a refusal with Retry-After), and calls it at a lower rate for a
// while, as well as one that answers slowly or not at all (rate_limiter.h); renews the signature once when a
// service does not accept it; repeats what may be repeated after a network fault.
class ApiClient {
 public:
  struct Options {
    std::string cloud;  // its name, for log lines
    FaultReader read_fault = &ReadFault;
    // For an API whose refusals have their code in a header; in place of read_fault. Null: read_fault.
    std::function<Fault(const net::HttpReply& refusal)> read_refusal;
    // The id that the cloud gave to a call, by its answer; part of errors. Null: there is none, or the fault
    // has it.
    std::function<std::string(const net::HttpReply& answer)> request_id;
    Remedies remedies;
    // Limits for calls that change something, and for the others, of all services; none: unlimited, as long
    // as a service bears all.
    std::optional<RateLimiter::Settings> change_rate;
    std::optional<RateLimiter::Settings> read_rate;
    // How often what may be repeated is repeated: after a network fault; after 500, 502 and 504 of which the
    // reader says kRetry.
    int network_repeats = 1;
    int server_error_repeats = 0;
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

  struct Tries {
    int busy = 0;  // answers of an overloaded service
    int network = 0;
    int server_errors = 0;
    bool has_renewed = false;
  };

  // What calls of one budget have: rates that adapt to what the service bears.
  struct Budget {
    Budget(Loop& loop, const Options& options);

    RateLimiter changes;
    RateLimiter reads;
    SteadyTime paused_until{};
    std::size_t waiting = 0;  // calls that wait for their turn
    double reported_share = 1;
    std::size_t reported_waiting = 0;
  };

  Budget& BudgetOf(const ApiRequest& request);
  RateLimiter& RateOf(const ApiRequest& request) {
    Budget& budget = BudgetOf(request);
    return request.reads() ? budget.reads : budget.changes;
  }
  std::string RequestIdOf(const net::HttpReply& reply) const;
  Task<> WaitForTurn(const ApiRequest& request);
  Task<Answer> Send(const ApiRequest& request);
  Task<net::HttpReply> SendCounted(const ApiRequest& request, net::HttpCall call);
  std::optional<Duration> PauseAfter(const ApiRequest& request, const net::HttpReply& reply,
                                     const Fault& fault, Tries& tries, Backoff& pauses, SteadyTime sent);
  Duration PauseService(const ApiRequest& request, const net::HttpReply& reply, Duration otherwise);
  void NoteAnswer(const ApiRequest& request, SteadyTime sent);
  void NoteNoAnswer(const ApiRequest& request, const Failure& failure, SteadyTime sent);
  void ReportRate(const ApiRequest& request);
  void Count(const ApiRequest& request, int status, Duration duration);

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
  // The configured rates, of all budgets together.
  RateLimiter change_rate_;
  RateLimiter read_rate_;
  std::map<std::string, Budget> budgets_;
  LogThrottle logged_slowdowns_;
};

}  // namespace nodepool::driver::cloud::api
