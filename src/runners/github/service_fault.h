#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "async/attempt.h"
#include "base/clock.h"
#include "base/error.h"
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

}  // namespace nodepool::runners::github
