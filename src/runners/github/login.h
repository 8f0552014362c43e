#pragma once

#include <cstdint>
#include <string>

#include "async/gate.h"
#include "base/error.h"
#include "config/runner_services.h"
#include "runners/github/calls.h"

namespace nodepool::runners::github {

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
