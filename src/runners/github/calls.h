#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "async/loop.h"
#include "base/log/logging.h"
#include "base/metrics/metrics.h"
#include "base/random.h"
#include "config/runner_services.h"
#include "net/http/http_client.h"
#include "runners/github/service_fault.h"

namespace nodepool::runners::github {

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

}  // namespace nodepool::runners::github
