#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/event.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/log/logging.h"
#include "base/metrics.h"
#include "config/config.h"
#include "net/http/http_client.h"

namespace nodepool::runners::github {

// Statuses that decide what is done next.
inline constexpr int kUnauthorized = 401;
inline constexpr int kForbidden = 403;
inline constexpr int kTooMany = 429;

// A call of GitHub that was answered with a refusal. The verdict: kNotFound for 404, kConflict for 409,
// kRateLimited while calls of this kind have to pause, kRetry for a service that is down and for 401 and 403
// (the next call proves who we are anew), else kInvalid.
class ServiceError : public Error {
 public:
  ServiceError(Verdict verdict, std::string message, int status, std::string exception)
      : Error(verdict, std::move(message)), status_(status), exception_(std::move(exception)) {}

  int status() const { return status_; }
  // Whether the service names an exception of this class; `name` without its namespace.
  bool Is(std::string_view name) const;

 private:
  int status_;
  std::string exception_;  // "GitHub.….SomethingException, Assembly"; empty where there is none
};

// The refusal that a task has failed with; null: it has failed otherwise. Valid as long as the failure.
const ServiceError* RefusalIn(const Failure& failure);
bool IsRefusedWith(const Failure& failure, int status);

// What a refusal says: of the Actions service's JSON, of the REST API's, of plain text; HTML is left out.
// Without characters that a terminal obeys, and not long (runners.md 2.3).
struct Refusal {
  std::string exception;
  std::string message;
};
Refusal ReadRefusal(const net::HttpReply& reply);

// For how long a refusal asks us to wait; nullopt: it does not (runners.md 2.10).
std::optional<Duration> AskedPause(const net::HttpReply& reply, WallTime now);

// The error about an answer with a status from 400 on. `call` names it without secrets.
ServiceError ErrorOf(std::string_view call, const net::HttpReply& reply);

// The JSON of an answer, which may begin with a byte order mark. Error(kRetry): it is none.
boost::json::value ReadJson(std::string_view call, const net::HttpReply& reply);

inline constexpr int kMostRegistrations = 20;  // of a service at a time

// Sends the calls of one service: counts them, and pauses those of a kind for as long as an answer asks
// (runners.md 2.10).
class Calls {
 public:
  struct Options {
    std::string service;  // its name, for metrics and log lines
    std::string ca_path;  // empty: the system's authorities
    std::string proxy;    // empty: the environment's
    std::string user_agent;
  };

  // Everything outlives it, and it outlives all calls.
  Calls(Loop& loop, Random& random, net::HttpClient& http, metrics::Metrics& metrics, Options options);

  // For how long calls of the kind have to wait yet.
  Duration PauseOf(std::string_view kind) const;

  // Returns the answer if its status is below 400. `kind`, a literal, is counted and pauses by itself.
  // Errors: ServiceError, net::HttpError.
  Task<net::HttpReply> Send(std::string_view kind, net::HttpCall call);

  Loop& loop() { return loop_; }
  Random& random() { return random_; }
  const log::Logger& logger() const { return logger_; }

 private:
  Task<> AwaitPause(std::string_view kind);
  void NotePause(std::string_view kind, const net::HttpReply& reply);
  void Count(std::string_view kind, std::string result);

  Loop& loop_;
  Random& random_;
  net::HttpClient& http_;
  metrics::Metrics& metrics_;
  Options options_;
  std::shared_ptr<const net::TlsSettings> tls_;
  log::Logger logger_;
  std::map<std::string_view, SteadyTime> paused_until_;
};

// Whether what the call is about is there: false for a 404; other errors are thrown.
Task<bool> IsFound(Task<net::HttpReply> call);

// For GitHub, whose integrators name themselves in a JSON text.
Calls::Options OptionsFor(const config::RunnerService& service);

// Whose jobs a config URL means, and where GitHub's REST API is (runners.md 2.1).
struct Scope {
  enum class Kind { kOrganization, kRepository, kEnterprise };
  Kind kind = Kind::kOrganization;
  std::string url;      // without a default port
  std::string api;      // "https://api.github.com", without a slash at the end
  std::string actions;  // path of its runners below `api`: "/orgs/octo/actions"
};

// `url` begins with https:// and has one or two parts of a path. Error(kInvalid) else.
Expected<Scope> ReadConfigUrl(const std::string& url);
// That of a service; throws the error.
Scope ScopeOf(const config::RunnerService& service);

inline constexpr std::size_t kRestPage = 100;     // entries of a list's page, the most that there may be
inline constexpr std::int64_t kDefaultGroup = 1;  // of runners

// A REST call of GitHub. `target` follows the API's address.
struct RestCall {
  std::string_view kind;  // a literal, as of Calls::Send
  std::string method = "GET";
  std::string target;
  std::string body = {};  // JSON
  std::string etag = {};  // of the answer that is known: 304 when it is still the same
};

// The token that REST calls of one service carry: a personal one, or that of an app's installation, which is
// kept until five minutes before its end (runners.md 2.2). No secret is in a log line or an error.
class Login {
 public:
  // `calls` outlives it.
  Login(Calls& calls, Scope scope, config::RunnerCredentials credentials);

  // Error(kInvalid), with the remedy: there are no credentials, or the key cannot be read.
  Task<std::string> Token();
  // The service does not accept it any more.
  void Discard();

  // Sends a REST call with the token. A 401 is tried once more with a new token.
  Task<net::HttpReply> Send(RestCall call);

 private:
  Task<std::string> NewToken();
  Task<net::HttpReply> SendOnce(const RestCall& call, std::string token);

  Calls& calls_;
  Scope scope_;
  config::RunnerCredentials credentials_;
  std::string token_;
  SteadyTime good_until_{};
  Gate gate_{1};
};

// The claims of an app's token: they begin a minute ago, since clocks differ, and last nine minutes.
std::string AppClaims(const std::string& client_id, WallTime now);

}  // namespace nodepool::runners::github
