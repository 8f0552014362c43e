#pragma once

#include <expected>
#include <memory>
#include <string>

#include "driver/loading/load_config.h"
#include "web/access/token_verifier.h"
#include "web/router.h"

namespace nodepool::web {

// Who sends a request: the bearer of a token.
struct Caller {
  TokenVerifier::Token token;
  std::string address;

  const std::string& name() const { return token->name; }
  bool may(config::Scope scope) const { return token->may(scope); }
};

// Who may do what through the web server (http-requests.md 2). Changes and refusals are logged by
// `nodepool.audit`.
class Access {
 public:
  // The loop outlives it; it outlives the requests.
  Access(Loop& loop, TokenVerifier::Match match);

  // Puts the tokens of `config` in force.
  void Configure(const config::Config& config);

  // The bearer of the request's token, or the refusal. `request` is valid until the task ends.
  Task<std::expected<Caller, Response>> Identify(const Request& request);
  // From now on nothing is granted for being local: jobs can connect to this host's loopback interface.
  void DistrustThisHost() { trusts_this_host_ = false; }
  // Whether the request may do what is for this host alone.
  bool IsLocal(const Request& request) const { return trusts_this_host_ && request.is_from_this_host; }
  // Whether the request may be read without a token.
  bool IsOpen(const Request& request) const;

  // Logs a change: "<what> <on what>: <result>".
  void Audit(const Caller& caller, const std::string& what) const;

 private:
  Response Refuse(const Request& request, const TokenVerifier::Verdict& verdict,
                  const std::string& text) const;

  TokenVerifier verifier_;
  bool read_needs_token_ = false;
  bool trusts_this_host_ = true;
  log::Logger logger_;
};

// A handler that asks for a token where reading needs one, and calls `next`. Both outlive it.
Endpoint::Handler GuardReading(Access& access, const Router& next);

}  // namespace nodepool::web
